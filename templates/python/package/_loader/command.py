"""How this package is started from a terminal, as usage and advice say it."""

from __future__ import annotations

import os


def name_command(package: str) -> str:
    """The single executable file where this runs from one (its runtime says so in `PEX`), else `python -m`. An
    application's own file is not meant: its name is another than the package's.
    """
    file = os.environ.get("PEX", "")
    stem = os.path.splitext(os.path.basename(file))[0]
    return file if stem.replace("-", "_").replace(".", "_") == package else f"python -m {package}"
