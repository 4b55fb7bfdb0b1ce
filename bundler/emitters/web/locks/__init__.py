"""Locks of what web bundles contain, and of what packs them."""

from pathlib import Path

FOLDER = Path(__file__).parent
