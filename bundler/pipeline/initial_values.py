"""Initial values of states that the user gave as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from bundler.execution.cache import Cache
from bundler.execution.sources import Source, digest_source
from bundler.model.errors import UsageError
from bundler.model.state import StateLink
from bundler.support.reads import announce_look

MAX_BYTES: Final = 64 << 20
"""Maximum size of an initial value, which every step of the golden set has with the later ones: 64 MiB."""


def open_initial_values(links: Sequence[StateLink], cache: Cache) -> tuple[tuple[StateLink, ...], dict[str, Source]]:
    """The links as a plan has them, with roles in place of paths, and the file of each role. Raises `UsageError`."""
    sources: dict[str, Source] = {}
    found: list[StateLink] = []
    for place, link in enumerate(links):
        role = f"initial-{place}"
        if link.initial == "file":
            sources[role] = digest_source(_check_file(link), (), cache)
        found.append(replace(link, file=role) if link.initial == "file" else link)
    return tuple(found), sources


def _check_file(link: StateLink) -> Path:
    """What it holds is checked where it is read; here, that hashing it ends."""
    path = Path(link.file)
    announce_look(path)
    label = f"state {link.input[:80]!r}: {str(path)[:200]!r}"
    if not path.is_file():
        raise UsageError(
            f"{label} is not a file",
            hint="write it with numpy.save('start.npy', array); check its path and permissions",
        )
    if path.stat().st_size > MAX_BYTES:
        raise UsageError(
            f"{label} has {path.stat().st_size:,} bytes (max {MAX_BYTES:,})",
            hint="give the state of one stream, without an axis of samples or steps",
        )
    return path
