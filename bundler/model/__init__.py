"""Frozen values that every room shares. Standard library only, so that any tool environment can import them."""
