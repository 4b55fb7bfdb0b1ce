"""Where we print to, when it is closed or takes nothing."""

from __future__ import annotations

import os
import sys
from typing import Final

_LAST_STANDARD: Final = 2


def open_outputs() -> None:
    """Give a closed standard input, output or error the null device: else the first file that we open takes its number,
    and what libraries and tools of ours say lands in that file.
    """
    opened = os.open(os.devnull, os.O_RDWR)
    while opened <= _LAST_STANDARD:
        os.set_inheritable(opened, True)
        opened = os.open(os.devnull, os.O_RDWR)
    os.close(opened)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - lives as long as we do
