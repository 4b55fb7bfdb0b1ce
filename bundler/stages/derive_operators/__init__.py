"""Derive which operators, and which of their types, a runtime needs for a model."""
