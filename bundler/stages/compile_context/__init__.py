"""Compile a model ahead of time for a provider that a plugin contains."""
