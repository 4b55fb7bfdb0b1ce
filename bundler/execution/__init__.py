"""Walks a plan: artifact store, action records, workers, journal, progress events."""
