"""Stages, one folder each: every process may import `spec.py`, only a worker imports `run.py`."""
