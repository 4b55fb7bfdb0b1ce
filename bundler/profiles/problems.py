"""What is wrong with a profile, one line each: the file, the key, what it has, what was expected and perhaps meant."""

from __future__ import annotations

import difflib
import json
import re
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from bundler.profiles.chain import Key, Layered, shorten
from bundler.profiles.schema import TargetProfile
from bundler.profiles.sections import profile_model

MOST_MEANT = 2
"""Methods that a message suggests."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong at one place."""

    key: Key
    text: str


def show_problem(problem: Problem, layered: Layered) -> str:
    """The problem as one line."""
    return f"{layered.origin(problem.key)}: {show_key(problem.key)}: {problem.text}"


def show_key(key: Key) -> str:
    """`variants[0].session_config."session.x"`: a place as one would write it, hostile names escaped."""
    shown = ""
    for part in key:
        if isinstance(part, int):
            shown += f"[{part}]"
        else:
            shown += ("." if shown else "") + (part if _BARE.fullmatch(part) else json.dumps(part))
    return shown


def suggest(name: object, known: Iterable[str]) -> str:
    """`; did you mean "x"?`, or nothing where no known name is close."""
    names = list(known)
    text = str(name)
    close = difflib.get_close_matches(text, names, n=1) or difflib.get_close_matches(text.lower(), names, n=1)
    return f'; did you mean "{close[0]}"?' if close else ""


def explain_errors(
    error: ValidationError, data: Mapping[str, Any], root: type[BaseModel] = TargetProfile
) -> list[Problem]:
    """Every error of the check of `data` as a `root`, one problem for each place (a value that fits no type of several
    is one problem).
    """
    problems: dict[Key, Problem] = {}
    for item in error.errors(include_url=False, include_context=True):
        if item["type"] == "too_short" and item["input"]:
            # Elements that are wrong themselves are not counted; they have errors of their own.
            continue
        key, cut = _trim(item["loc"], data, missing=item["type"] == "missing")
        if key not in problems:
            problems[key] = Problem(key=key, text=_explain(key, item, root, several=cut))
    return list(problems.values())


def _trim(loc: Key, data: Any, *, missing: bool) -> tuple[Key, bool]:
    """`loc` without what is no part of the data (the names of the types that were tried), and whether there was any."""
    key: list[str | int] = []
    for part in loc:
        inside = (isinstance(data, Mapping) and part in data) or (
            isinstance(data, list | tuple) and part in range(len(data))
        )
        if not inside:
            last = missing and len(key) == len(loc) - 1
            return ((*key, part), False) if last else (tuple(key), True)
        data = data[part]
        key.append(part)
    return tuple(key), False


def _explain(key: Key, item: Any, root: type[BaseModel], *, several: bool) -> str:
    section, field = _find_field(key, root)
    kind = item["type"]
    if kind == "extra_forbidden":
        known = list(section.model_fields) if section else []
        return "unknown key" + (suggest(key[-1], known) or f" (known: {', '.join(known)})")
    if kind == "missing":
        return "is missing" + _meaning(field)
    if kind == "value_error":
        return str(item["ctx"]["error"])
    if kind == "tuple_type" and isinstance(item["input"], Mapping) and field and _section_in(field.annotation):
        return f"got a table, expected an array of tables: [[{show_key(key)}]]{_meaning(field)}"
    got = f"got {shorten(item['input'])}"
    if several:
        return f"{got}, expected text, a number, or true or false{_meaning(field)}"
    return f"{got}, expected {_expected(item)}{_nearest(item)}{_meaning(field)}"


def _meaning(field: FieldInfo | None) -> str:
    return f" ({' '.join(field.description.split()).rstrip('.')})" if field and field.description else ""


def _nearest(item: Any) -> str:
    return suggest(item["input"], _choices(item)) if item["type"] == "literal_error" else ""


def _choices(item: Any) -> list[str]:
    """Texts, in quotes as pydantic lists them, or numbers."""
    found = re.findall(r"'[^']*'|\d+", str(item.get("ctx", {}).get("expected", "")))
    return [choice.strip("'") for choice in found]


_TYPES: Mapping[str, str] = {
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "tuple_type": "an array",
    "dict_type": "a table",
    "model_type": "a table",
    "string_unicode": "valid Unicode",
}


def _expected(item: Any) -> str:
    kind, context = item["type"], item.get("ctx", {})
    if kind == "literal_error":
        return "one of " + ", ".join(_choices(item))
    if kind == "string_pattern_mismatch":
        return f"text that matches {context['pattern']}"
    if kind == "too_short":
        return f"at least {context['min_length']} element"
    if kind in _TYPES:
        return _TYPES[kind]
    # What is left states a bound: "Input should be greater than 0".
    return str(item["msg"]).removeprefix("Input should be ").removeprefix("String should have ")


def takes_text(key: Key) -> bool:
    """Whether the field at `key` is text, or nothing."""
    field = _find_field(key, profile_model())[1]
    options = typing.get_args(field.annotation) if field else ()
    kinds = {option for option in options if option is not type(None)} or ({field.annotation} if field else set())
    return bool(kinds) and all(_is_text(kind) for kind in kinds)


def _is_text(kind: Any) -> bool:
    return kind is str or (typing.get_origin(kind) is typing.Annotated and typing.get_args(kind)[0] is str)


def _find_field(key: Key, root: type[BaseModel]) -> tuple[type[BaseModel] | None, FieldInfo | None]:
    """The section that the last part of `key` belongs to, and its field there."""
    section: type[BaseModel] | None = root
    field: FieldInfo | None = None
    owner = section
    for part in key:
        if isinstance(part, int) or section is None:
            continue
        owner = section
        field = section.model_fields.get(part)
        section = _section_in(field.annotation) if field else None
    return owner, field


def _section_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_section_in(argument) for argument in typing.get_args(annotation))
    return next((section for section in found if section), None)


def describe_unknown_method(name: str, known: Iterable[str]) -> str:
    """There is no such precision method, which there are, and which was perhaps meant."""
    names = tuple(known)
    parts = [method for method in names if name.lower() in method.split("-")][:MOST_MEANT]
    meant = f"; did you mean {' or '.join(map(json.dumps, parts))}?" if parts else suggest(name, names)
    return f"unknown precision method {shorten(name)} (known: {', '.join(names)}){meant}"
