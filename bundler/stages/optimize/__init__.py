"""Optimise offline with the target's runtime, and write a canonical model."""
