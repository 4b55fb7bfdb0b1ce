"""Optimise ahead of time with the target's runtime, and write a canonical model."""
