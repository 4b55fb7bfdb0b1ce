"""Conformance vectors: README.md says what is in them."""
