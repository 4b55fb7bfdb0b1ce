"""Locks of what JVM bundles contain, and of what compiles them."""

from pathlib import Path

FOLDER = Path(__file__).parent
