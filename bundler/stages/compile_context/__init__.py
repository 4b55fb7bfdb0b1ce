"""Compile a model for a provider that a plugin carries."""
