"""From (facts, profile, request) to a plan: pure, without reading files or measuring."""
