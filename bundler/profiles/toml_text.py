"""Profiles as TOML text. The standard library reads TOML and does not write it; a profile needs few kinds of values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bundler.profiles.chain import Key
from bundler.support.text import toml_string

_BARE = re.compile(r"[A-Za-z0-9_-]+")
Comment = Callable[[Key], str]
"""The remark behind the value at a place; empty for none."""


def no_comment(_key: Key) -> str:
    """A `Comment` that says nothing."""
    return ""


def write_toml(data: Mapping[str, Any], comment: Comment = no_comment) -> str:
    """`data` (tables, arrays, text, numbers, booleans) as a TOML document; entries that are None are left out."""
    return "\n".join(_write_table(data, (), (), comment)).strip("\n") + "\n"


def format_name(name: str) -> str:
    """A key: bare where TOML allows it."""
    return name if _BARE.fullmatch(name) else toml_string(name)


def format_value(value: Any) -> str:
    """One value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{format_name(name)} = {format_value(item)}" for name, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(format_value(item) for item in value) + "]"
    return str(value)


def _write_table(data: Mapping[str, Any], names: tuple[str, ...], key: Key, comment: Comment) -> Iterator[str]:
    inner: list[tuple[str, Any]] = []
    for name, value in data.items():
        if value is None or value in ({}, ()):
            continue
        if isinstance(value, Mapping) or _is_table_array(value):
            inner.append((name, value))
        else:
            yield f"{format_name(name)} = {format_value(value)}" + _remark(comment((*key, name)))
    for name, value in inner:
        yield from _write_inner(value, (*names, name), (*key, name), comment)


def _write_inner(value: Any, names: tuple[str, ...], key: Key, comment: Comment) -> Iterator[str]:
    path = ".".join(format_name(name) for name in names)
    if isinstance(value, Mapping):
        yield from ("", f"[{path}]")
        yield from _write_table(value, names, key, comment)
        return
    for position, item in enumerate(value):
        yield from ("", f"[[{path}]]" + _remark(comment((*key, position))))
        yield from _write_table(item, names, (*key, position), comment)


def _is_table_array(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _remark(text: str) -> str:
    return f"  # {text}" if text else ""
