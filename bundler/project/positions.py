"""Finds the line of a key in a TOML file: the parser of the standard library gives values without their lines."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

Key = tuple[str | int, ...]

MAX_STATEMENT_LINES = 500
"""After a longer value no lines are found: each further line is parsed with all before it."""


def find_line(text: str, key: Key) -> int | None:
    """The line, from 1, of the statement that gives `key` in the valid TOML `text`, or else the nearest table that it
    would be in; None where not even its first part is there.
    """
    found, most = None, 0
    for line, places in _walk(text):
        shared = max((_count_shared(place, key) for place in places), default=0)
        if shared > most:
            found, most = line, shared
    return found


def _count_shared(one: Key, other: Key) -> int:
    pairs = list(zip(one, other, strict=False))
    return next((number for number, (a, b) in enumerate(pairs) if a != b), len(pairs))


def _walk(text: str) -> Iterator[tuple[int, list[Key]]]:
    """Each statement (a table's head, or a key with its value) with its first line and the keys that it gives."""
    head: Key = ()
    elements: dict[Key, int] = {}
    for line, statement, data in _split(text):
        if statement.startswith("["):
            head = _enter(data, elements)
            yield line, [head]
        else:
            yield line, [(*head, *leaf) for leaf in _leaves(data)]


def _split(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Each statement, parsed alone. No beginning of one is a statement itself, so the first lines that parse are it."""
    begin, lines = 0, list[str]()
    for number, line in enumerate(text.split("\n"), start=1):
        if not lines and (not line.strip() or line.lstrip().startswith("#")):
            continue
        begin = begin if lines else number
        lines.append(line)
        if len(lines) > MAX_STATEMENT_LINES:
            return
        try:
            data = tomllib.loads("\n".join(lines))
        except ValueError:
            continue
        yield begin, lines[0].lstrip(), data
        lines = []


def _enter(data: dict[str, Any], elements: dict[Key, int]) -> Key:
    """The key of the table whose head `data` was parsed from; `elements` counts those of arrays of tables."""
    head: Key = ()
    rest: Any = data
    while rest:
        if isinstance(rest, list):
            elements[head] = elements.get(head, -1) + 1
            rest = rest[0]
        else:
            if head in elements:
                head = (*head, elements[head])
            ((name, rest),) = rest.items()
            head = (*head, name)
    return (*head, elements[head]) if head in elements else head


def _leaves(data: Any, above: Key = ()) -> Iterator[Key]:
    """Every key of a parsed value, of tables and arrays of tables inside it too."""
    if above:
        yield above
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, value in inner:
        yield from _leaves(value, (*above, name))
