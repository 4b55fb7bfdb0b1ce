"""Stages: one folder each, `spec.py` for everybody and `run.py` for a worker only."""
