"""The command line of this package."""

from __future__ import annotations

import sys

from . import Model
from ._loader.cli import main

if __name__ == "__main__":
    sys.exit(main(__package__ or "", Model))
