"""What `verify` goes on with is what it checked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bundler.pipeline.verify import check_bundle
from bundler.reporting.manifest import make_manifest, render_manifest, write_manifest
from tests.unit.reporting.builds import change_manifest, make_request


@contextmanager
def exchange_at_second_reading(path: Path, content: str) -> Iterator[None]:
    """Another user who can write the folder, at the worst moment: `path` is exchanged before it is opened again."""
    opened = 0
    watching = True

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal opened
        if watching and event == "open" and str(arguments[0]) == str(path):
            opened += 1
            if opened == 2:
                path.unlink()
                path.with_name("other.json").write_text(content)
                path.with_name("other.json").rename(path)

    sys.addaudithook(hear)  # for the rest of the process, so it can be reported to stop
    try:
        yield
    finally:
        watching = False


def test_a_manifest_that_is_exchanged_after_the_check_is_not_believed(tmp_path: Path) -> None:
    manifest = make_manifest(tmp_path, make_request())
    written = write_manifest(tmp_path, manifest)
    forged = change_manifest(manifest, ecosystem="moon", shortfalls=("none",))
    with exchange_at_second_reading(written, render_manifest(forged)):
        integrity, found = check_bundle(tmp_path)
    assert (found.ecosystem, found.shortfalls) == (manifest.ecosystem, manifest.shortfalls)
    assert integrity.content == render_manifest(manifest).encode()
