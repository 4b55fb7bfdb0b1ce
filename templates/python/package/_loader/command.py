"""How this package is started from a terminal, as usage and advice say it."""

from __future__ import annotations

import os


def name_command(package: str) -> str:
    """The single executable file if this runs from one (named in `PEX`), otherwise `python -m`. A pex file of an
    application has another name than the package and is not meant.
    """
    file = os.environ.get("PEX", "")
    stem = os.path.splitext(os.path.basename(file))[0]
    return file if stem.replace("-", "_").replace(".", "_") == package else f"python -m {package}"
