"""Flit's build backend without compression: that takes minutes for large models, whose weights hardly shrink by it."""

from __future__ import annotations

import zlib

from flit_core.buildapi import *  # noqa: F403 (the whole of it)

zlib.Z_DEFAULT_COMPRESSION = zlib.Z_NO_COMPRESSION
