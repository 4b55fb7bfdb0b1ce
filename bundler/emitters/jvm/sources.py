"""The loader's sources in a bundle: those of the templates, in a package of the bundle's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bundler.emitters.writing import write_text
from bundler.support.data import data_root

LOADER: Final = "bundler.loader"
"""The package that the sources stand in as they are kept here."""


def write_sources(parts: Sequence[str], package: str, folder: Path) -> tuple[Path, ...]:
    """Write the loader's `parts` (folders of the template) as `package` into `folder`. Raises `StageError`."""
    kept = data_root("templates") / "kotlin"
    sources = (source for part in parts for source in sorted((kept / part).glob("*.kt")))
    return tuple(rename_package(source, LOADER, package, folder) for source in sources)


def rename_package(source: Path, package: str, new: str, folder: Path) -> Path:
    """Write a source of `package` into `folder` as one of the package `new`. Raises `StageError`."""
    named = re.compile(rf"^(package|import) {re.escape(package)}\b", re.MULTILINE)
    target = folder / source.name
    write_text(target, named.sub(rf"\1 {new}", source.read_text("utf-8")))
    return target
