"""Flit's build backend without compression: that takes minutes for large models, whose weights hardly shrink by it."""

from __future__ import annotations

import sys
import zlib

# The metadata say so, too, and an installer reads them after it has looked for a runtime for this Python in vain.
if sys.version_info < (3, 11):  # noqa: UP036 (it says so to those who have an older one)
    sys.exit("this bundle needs Python 3.11 or newer; this is Python {}.{}".format(*sys.version_info[:2]))

from flit_core.buildapi import *  # noqa: F403 (the whole of it)

zlib.Z_DEFAULT_COMPRESSION = zlib.Z_NO_COMPRESSION
