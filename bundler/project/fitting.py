"""Checks that the overrides of a project file fit its targets, and finds the line of each that does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bundler.model.errors import UsageError
from bundler.profiles.overrides import ORIGIN
from bundler.profiles.problems import show_key
from bundler.profiles.resolve import resolve_target
from bundler.project.globs import find_globs
from bundler.project.load import LoadedProject, overrides_for
from bundler.project.positions import Key


def check_fit(loaded: LoadedProject, targets: Iterable[str]) -> None:
    """Raise `UsageError`, with lines of the file, for changes that do not fit one of `targets` (an id, or where the
    profile is).
    """
    for target in dict.fromkeys(targets):
        overrides = overrides_for(loaded.project, target, loaded.root)
        if not overrides:
            continue
        try:
            resolve_target(target, overrides)
        except UsageError as error:
            if not error.details or not all(detail.startswith(f"{ORIGIN} ") for detail in error.details):
                continue  # the profile itself is at fault, and whoever needs it says so
            raise UsageError(
                f"{loaded.path} does not fit the target {target}",
                details=tuple(_place(loaded, target, detail) for detail in error.details),
                hint=f"`bundler targets show {target}` prints the target's values; docs/options.md describes every key",
            ) from error


def _place(loaded: LoadedProject, target: str, detail: str) -> str:
    """`--set precision.method: …` as `bundler.toml:9: precision.method: …`."""
    text = detail.removeprefix(f"{ORIGIN} ")
    shown = text.partition(": ")[0]
    key = next((place for known, place in _changes(loaded, target) if known == shown), None)
    return f"{loaded.place(key) if key else loaded.path.name}: {text}"


def _changes(loaded: LoadedProject, target: str) -> Iterator[tuple[str, Key]]:
    """Every changed key of the profile, as messages show it, with its place in the file; the last one counts first."""
    data = loaded.source.data if loaded.source else {}
    tables: list[tuple[Key, Any]] = [((name,), {name: data.get(name, {})}) for name in ("accuracy", "budget")]
    overrides = data.get("overrides", {})
    tables += [(("overrides", glob), overrides[glob]) for glob in find_globs(overrides, target)]
    for above, table in reversed(tables):
        prefix = above if above[0] == "overrides" else ()
        for key in _keys(table):
            yield show_key(key), (*prefix, *key)


def _keys(value: Any, above: Key = ()) -> Iterator[Key]:
    if above:
        yield above
    items: Iterable[tuple[str, Any]] = value.items() if isinstance(value, Mapping) else ()
    for name, inner in items:
        yield from _keys(inner, (*above, name))
