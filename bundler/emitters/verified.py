"""What was verified, in a bundle's README: known only when the bundle is complete, and so written last.

A README is rendered with `POINTER` in it, which is true of any copy; packed formats keep that. In the one in
the bundle's folder, the result of the verification replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bundler.emitters.writing import write_text
from bundler.model.artifacts import FileRecord
from bundler.model.digests import digest_file
from bundler.support.text import markdown_text

README: Final = "README.md"
POINTER: Final = (
    "The `bundle.json` of the bundle that this came in says which variants were verified when it was built, and where."
)


def write_verification(bundle: Path, lines: Sequence[str]) -> FileRecord | None:
    """Replace the pointer of the bundle's README by `lines`; returns the file's new record.

    None where an emitter wrote no README, or one without the pointer. Raises `StageError` when it cannot be written.
    """
    path = bundle / README
    before, pointer, after = path.read_text("utf-8").partition(POINTER) if path.is_file() else ("", "", "")
    if not pointer:
        return None
    write_text(path, before + "\n".join(f"- {markdown_text(line)}" for line in lines) + after)
    return FileRecord(path=README, size=path.stat().st_size, sha256=digest_file(path))
