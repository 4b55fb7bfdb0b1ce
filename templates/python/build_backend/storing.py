"""Flit's build backend without compression, which takes minutes for large models and hardly shrinks their weights."""

from __future__ import annotations

import sys
import zlib

# The metadata say so, too, but an installer reads them only after it has searched for a runtime for this Python.
if sys.version_info < (3, 11):  # noqa: UP036 (the message is for older versions)
    sys.exit("this bundle requires Python 3.11 or newer; this is Python {}.{}".format(*sys.version_info[:2]))

from flit_core.buildapi import *  # noqa: F403 (the whole of it)

zlib.Z_DEFAULT_COMPRESSION = zlib.Z_NO_COMPRESSION
