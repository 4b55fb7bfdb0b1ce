"""From (facts, profile, request) to a plan: pure, without a file read or a thing measured."""
