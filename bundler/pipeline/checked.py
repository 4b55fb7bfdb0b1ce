"""What the inspection of a model read beside the model: its external data, which the step's key cannot know before."""

from __future__ import annotations

import stat
from pathlib import Path

from bundler.execution.records import is_safe_path
from bundler.model.facts import ModelFacts


def is_as_checked(model: Path, facts: ModelFacts) -> bool:
    """Whether the external data are what the check of the model found: real files in its folder, each of its size.

    No more of them was read. What facts from a cache say is not believed: no path leads out, nothing is opened.
    """
    return tuple(_size_of(model.parent, name) for name in facts.external_files) == facts.external_sizes


def _size_of(folder: Path, name: str) -> int | None:
    """The size of a plain file with one name, no part of whose path is a link; None for anything else."""
    path = folder / name
    try:
        status = path.lstat()
        inside = is_safe_path(name) and path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):
        return None
    return status.st_size if inside and stat.S_ISREG(status.st_mode) and status.st_nlink == 1 else None
