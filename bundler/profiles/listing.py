"""What a list of targets shows. Read without the schema, so that a list is instant; `validate` checks the files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bundler.model.errors import ProfileError
from bundler.profiles.chain import Layered, load_chain
from bundler.profiles.locations import find_catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One target in a list. `problem` says why its file could not be read; then all but `id` and `file` is empty."""

    id: str
    title: str = ""
    group: str = ""
    system: str = ""
    architecture: str = ""
    providers: tuple[str, ...] = ()
    file: str = ""
    problem: str = ""


def list_targets() -> tuple[Summary, ...]:
    """All registered targets, sorted by group and name. One that cannot be read is listed with its problem."""
    found = [_summarize(name) for name in find_catalogue().targets]
    return tuple(sorted(found, key=lambda summary: (summary.group, summary.id)))


def _summarize(name: str) -> Summary:
    path = find_catalogue().targets[name]
    try:
        layered = load_chain(path)
    except ProfileError as error:
        return Summary(id=name, group="Not readable", file=str(path), problem=error.message)
    platform = _table(layered.data.get("platform"))
    return Summary(
        id=name,
        title=str(layered.data.get("title", "")),
        group=str(layered.data.get("group", "")),
        system=str(platform.get("system", "")),
        architecture=str(platform.get("architecture", "")),
        providers=_providers(layered),
        file=layered.files[0],
    )


def _providers(layered: Layered) -> tuple[str, ...]:
    """Names of all providers of all variants, each once, the preferred one first."""
    names: dict[str, None] = {}
    for variant in _tables(layered.data.get("variants")):
        for provider in _tables(variant.get("providers")):
            names.setdefault(str(provider.get("name", "")))
    return tuple(names)


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
