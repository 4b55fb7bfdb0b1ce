"""Locks of what JVM bundles contain, and of what compiles them and archives for Android."""

from pathlib import Path

FOLDER = Path(__file__).parent
