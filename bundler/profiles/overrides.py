"""`--set key=value`: one value of a profile, given on the command line."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Sequence
from typing import Any

from bundler.model.errors import UsageError
from bundler.profiles.chain import Key, Layered, shorten

ORIGIN = "--set"
FLAT = ("session_config", "sources", "dimensions", "shapes")
"""Tables whose own keys hold dots: what follows them in a key is one name, quoted or not."""
_SPLIT = re.compile(r"""^((?:[^="']|"(?:[^"\\]|\\.)*"|'[^']*')*)=(.*)$""", re.DOTALL)


def apply_overrides(layered: Layered, overrides: Sequence[str]) -> Layered:
    """`layered` with each `dotted.key=value` set. An element of an array is named by its position or its `name`.

    A value is read as TOML and, where it is none, taken as text. Raises `UsageError`.
    """
    data = copy.deepcopy(layered.data)
    origins = dict(layered.origins)
    spellings: dict[Key, str] = {}
    for override in overrides:
        key, value = parse_override(override)
        place = _assign(data, key, value, override)
        _forget(origins, place)
        _forget(spellings, place)
        origins[place] = ORIGIN
        spellings[place] = _split(override)[1]
    return Layered(data=data, origins=origins, files=layered.files, spellings=spellings)


def _forget(notes: dict[Key, str], place: Key) -> None:
    """Drop what is noted of `place` and of all below it."""
    for stale in [known for known in notes if known[: len(place)] == place]:
        del notes[stale]


def parse_override(text: str) -> tuple[tuple[str, ...], Any]:
    """The key's parts and the value of one `dotted.key=value`. Raises `UsageError`."""
    key, value = _split(text)
    return _parse_key(key, text), _parse_value(value)


def _split(text: str) -> tuple[str, str]:
    match = _SPLIT.match(text)
    if match is None:
        raise _malformed(text, "it has no =")
    return match[1].strip(), match[2].strip()


def _parse_key(text: str, override: str) -> tuple[str, ...]:
    try:
        table: Any = tomllib.loads(f"{text} = 0")
    except (ValueError, RecursionError) as error:
        raise _malformed(override, "its key is not a dotted TOML key") from error
    parts: list[str] = []
    while isinstance(table, dict) and len(table) == 1:
        ((name, table),) = table.items()
        parts.append(name)
    if table != 0:
        raise _malformed(override, "its key is not a dotted TOML key")
    for flat in FLAT:
        if flat in parts[:-1]:
            start = parts.index(flat) + 1
            return (*parts[:start], ".".join(parts[start:]))
    return tuple(parts)


def _parse_value(text: str) -> Any:
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return table["value"] if len(table) == 1 else text


def _assign(data: dict[str, Any], key: tuple[str, ...], value: Any, override: str) -> Key:
    holder: Any = data
    place: list[str | int] = []
    for name in key[:-1]:
        step = _step(holder, name, override)
        place.append(step)
        if isinstance(holder, dict) and not isinstance(holder.get(name), dict | list):
            holder[name] = {}
        holder = holder[step]
    last = _step(holder, key[-1], override)
    holder[last] = value
    return (*place, last)


def _step(holder: Any, name: str, override: str) -> str | int:
    if isinstance(holder, dict):
        return name
    if isinstance(holder, list):
        for position, element in enumerate(holder):
            if name == str(position) or (isinstance(element, dict) and element.get("name") == name):
                return position
    raise _malformed(override, f"the profile has no {shorten(name)} at that place")


def _malformed(override: str, reason: str) -> UsageError:
    return UsageError(
        f"cannot apply --set {shorten(override)}",
        details=(reason,),
        hint="write dotted.key=value, for instance --set optimization.level=basic",
    )
