"""Locks of the environments that stages run in."""

from pathlib import Path

FOLDER = Path(__file__).parent
