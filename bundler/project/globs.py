"""Which globs of `overrides` match a target: its id decides, also where it is given by its profile's path."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator
from pathlib import Path

from bundler.model.errors import ProfileError
from bundler.profiles.chain import load_chain
from bundler.profiles.resolve import target_ids


def find_globs(globs: Iterable[str], target: str) -> tuple[str, ...]:
    """Those of `globs` that match the id of `target`, in their order."""
    globs = tuple(globs)
    name = _find_id(target) if globs else ""
    return tuple(glob for glob in globs if fnmatch.fnmatchcase(name, glob))


def find_idle_globs(globs: Iterable[str], targets: Iterable[str]) -> Iterator[str]:
    """Those of `globs` that match neither one of `targets` nor any known target: what they say would never count."""
    ids = {*target_ids(), *map(_find_id, targets)}
    return (glob for glob in globs if not any(fnmatch.fnmatchcase(name, glob) for name in ids))


def _find_id(target: str) -> str:
    """The id of a profile is in its file; a profile that cannot be read is reported where it is resolved."""
    if not target.endswith(".toml"):
        return target
    try:
        found = load_chain(Path(target)).data["id"]
    except ProfileError:
        found = None
    return found if isinstance(found, str) else Path(target).stem
