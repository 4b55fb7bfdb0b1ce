"""Finds profile files: the targets and bases that bundler and other packages bring, and a user's own file."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from bundler.model.errors import EnvironmentMissingError
from bundler.support.data import data_root
from bundler.support.text import visible

GROUP = "bundler.targets"
"""Entry points of this group name a function without arguments that gives a folder of `<id>.toml`
and `_base/*.toml`."""
BASES = "_base"


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All registered profile files by name. `targets` can be built for; `bases` are only extended."""

    targets: dict[str, Path]
    bases: dict[str, Path]


@functools.cache
def find_catalogue() -> Catalogue:
    """Every registered folder's files; where two folders have the same name, bundler's own wins."""
    targets: dict[str, Path] = {}
    bases: dict[str, Path] = {}
    for folder in (data_root("targets"), *_foreign_folders()):
        for path in sorted(folder.glob("*.toml")):
            targets.setdefault(path.stem, path)
        for path in sorted((folder / BASES).glob("*.toml")):
            bases.setdefault(path.stem, path)
    return Catalogue(targets=targets, bases=bases)


def _foreign_folders() -> tuple[Path, ...]:
    # Our own registration is skipped: our folder is the first in any case.
    foreign = [entry for entry in entry_points(group=GROUP) if not entry.value.startswith("bundler.support.data:")]
    return tuple(_load_folder(entry.name, entry.load()) for entry in sorted(foreign, key=lambda entry: entry.name))


def _load_folder(name: str, locate: object) -> Path:
    folder = locate() if callable(locate) else locate
    if not isinstance(folder, Path) or not folder.is_dir():
        raise EnvironmentMissingError(
            f"the entry point {GROUP}:{name} gives no folder of target profiles",
            details=(f"it gave {folder!r}",),
            hint="report this to the maintainer of that package",
        )
    return folder


def describe_path(path: Path) -> str:
    """How messages name a profile file: ours by its place in `targets/`, another as seen from the working folder."""
    for root, shown in ((data_root("targets"), Path("targets")), (Path.cwd(), Path())):
        if path.is_relative_to(root):
            return visible((shown / path.relative_to(root)).as_posix())
    return visible(str(path))
