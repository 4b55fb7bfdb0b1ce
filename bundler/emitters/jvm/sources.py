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

_NAMED: Final = re.compile(rf"^(package|import) {re.escape(LOADER)}\b", re.MULTILINE)


def write_sources(parts: Sequence[str], package: str, folder: Path) -> tuple[Path, ...]:
    """Write the loader's `parts` (folders of the template) as `package` into `folder`. Raises `StageError`."""
    written = []
    for part in parts:
        for source in sorted((data_root("templates") / "kotlin" / part).glob("*.kt")):
            target = folder / source.name
            write_text(target, _NAMED.sub(rf"\1 {package}", source.read_text("utf-8")))
            written.append(target)
    return tuple(written)
