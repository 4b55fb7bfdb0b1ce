"""Samples of a pipeline, and what it answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bundler.model.errors import UsageError
from bundler.support.text import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What the pipeline answered to the sample in the file `path`: with the original models (`reference`) and with the
    bundle's (`answer`). `calls` counts those of each original model. A user's metric sees these.
    """

    path: Path
    reference: Any
    answer: Any
    calls: Mapping[str, int]

    @property
    def name(self) -> str:
        """The file's name."""
        return self.path.name

    @property
    def sample(self) -> Any:
        """What the pipeline was given: the arrays of an `.npz`, else the path."""
        return read_sample(self.path)


def list_samples(folder: Path) -> tuple[Path, ...]:
    """The files of the folder, by name. Raises `UsageError` where there are none."""
    found = tuple(path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith("."))
    if not found:
        raise UsageError("there are no samples for the pipeline", hint="put a file for each into the folder")
    return found


def read_sample(path: Path) -> Any:
    """The arrays of an `.npz`, else the path. Raises `UsageError`."""
    if path.suffix != ".npz":
        return path
    try:
        with np.load(path, allow_pickle=False) as archive:
            return dict(archive)
    except (OSError, ValueError) as error:
        raise UsageError(f"the sample {visible(path.name)} cannot be read: {visible(str(error))}") from error
