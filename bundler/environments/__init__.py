"""Locked, isolated tool environments, made with uv on first use and kept by digest."""
