"""Flit's build backend without compression, which takes minutes for large models and hardly shrinks their weights."""

from __future__ import annotations

import re
import sys
import zlib

# The metadata say so, too, but an installer reads them only after it has searched for a runtime for this Python.
if sys.version_info < (3, 11):  # noqa: UP036 (the message is for older versions)
    sys.exit("this bundle requires Python 3.11 or newer; this is Python {}.{}".format(*sys.version_info[:2]))

from flit_core.buildapi import *  # noqa: F403 (the whole of it)
from flit_core.buildapi import get_requires_for_build_wheel as _get_requires

_HERE = "{}.{}".format(*sys.version_info[:2])


def get_requires_for_build_wheel(config_settings=None):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201
    """The first thing that an installer asks: before it searches the folder `wheels` for what is not there."""
    with open("pyproject.toml", encoding="utf-8") as project:
        versions = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project.read())
    if _HERE not in versions:
        sys.exit(
            f"this bundle is for Python {', '.join(versions)}, and this is Python {_HERE}: "
            f"use one of those, or build the bundle again with --python {_HERE}"
        )
    return _get_requires(config_settings)


zlib.Z_DEFAULT_COMPRESSION = zlib.Z_NO_COMPRESSION
