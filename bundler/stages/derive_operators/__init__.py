"""Derive the operators, and their types, that a runtime requires for a model."""
