"""Stages that misbehave, and two that do not: what a third party would install, registered by `register`."""
