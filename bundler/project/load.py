"""Finding, reading and checking the project file."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bundler.model.errors import UsageError
from bundler.project.checking import Source, check_project
from bundler.project.globs import find_globs
from bundler.project.ownership import check_owner
from bundler.project.positions import Key
from bundler.project.schema import ComponentModel, Project
from bundler.support.reads import announce_look

FILE_NAME = "bundler.toml"
PYPROJECT = "pyproject.toml"
MAX_BYTES = 1_000_000
"""Bytes of a project file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedProject:
    """A checked project file and the folder that its paths are relative to; `source` knows its lines."""

    path: Path
    project: Project
    source: Source | None = None

    def place(self, key: Key) -> str:
        """Where `key`, or the table that misses it, begins: `bundler.toml:7`."""
        line = self.source.find_line(key) if self.source else None
        return self.path.name if line is None else f"{self.path.name}:{line}"

    @property
    def root(self) -> Path:
        """The folder of the file."""
        return self.path.parent

    @property
    def lock_path(self) -> Path:
        """The path of its lock."""
        return self.root / "bundler.lock"


def find_project(start: Path, *, instead: str = "") -> LoadedProject:
    """The project file in `start` or the nearest folder above it. Raises `UsageError`, for another user's file too.

    `instead` is the command that does the same without one, where there is such a command.
    """
    for folder in (start, *start.parents):
        for name in (FILE_NAME, PYPROJECT):
            path = folder / name
            announce_look(path)
            source = _read(path) if path.is_file() else None
            if source is not None:
                check_owner(path)
                return LoadedProject(path=path, project=check_project(source), source=source)
    raise UsageError(
        f"no {FILE_NAME} in {start} or a folder above it",
        hint="`bundler init` writes one" + (f"; without one: {instead}" if instead else ""),
    )


def _read(path: Path) -> Source | None:
    """The project's table in `path`; None when a pyproject.toml has none."""
    try:
        text = _read_text(path)
        data = _parse(text)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UsageError(f"{path} is not valid TOML", details=(_locate_fault(path, reason),)) from error
    if path.name == FILE_NAME:
        return Source(path=path, text=text, data=data)
    table = data.get("tool", {}).get("bundler")
    return Source(path=path, text=text, data=table, table=("tool", "bundler")) if isinstance(table, dict) else None


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}", hint="check its permissions") from error
    if len(content) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
    return content.decode("utf-8").replace("\r\n", "\n")


def _locate_fault(path: Path, message: str) -> str:
    """What the parser says, with the line first as in all other messages."""
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
    return f"{path.name}:{found[2]}: {found[1]} (column {found[3]})" if found else f"{path.name}: {message}"


def _parse(text: str) -> dict[str, Any]:
    data = tomllib.loads(text)
    if _has_null(data):
        raise ValueError("it contains a null character, which paths and names cannot have")
    return data


def _has_null(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_has_null(item) for entry in value.items() for item in entry)
    return any(map(_has_null, value)) if isinstance(value, list) else isinstance(value, str) and "\0" in value


def overrides_for(project: Project, target: str, root: Path) -> tuple[str, ...]:
    """The project's changes to the profile `target` (its id, or where it is), as `dotted.key=value` in order: gates,
    budgets, then globs. The file of a metric is relative to `root`.
    """
    accuracy = _locate_metric(_given(project.accuracy), root)
    tables: list[Mapping[str, Any]] = [{"accuracy": accuracy}, {"budget": _given(project.budget)}]
    tables += [project.overrides[pattern] for pattern in find_globs(project.overrides, target)]
    return tuple(line for table in tables for line in _flatten(table, ()))


def component_overrides(component: ComponentModel, root: Path) -> tuple[str, ...]:
    """What a component changes in the profile for itself, as `overrides_for` writes it."""
    accuracy = _locate_metric(_given(component.accuracy), root)
    return tuple(_flatten({"precision": _given(component.precision), "accuracy": accuracy}, ()))


def _given(section: BaseModel) -> dict[str, Any]:
    """What the file says itself: the rest is the profile's."""
    return section.model_dump(mode="json", exclude_unset=True)


def _locate_metric(accuracy: Mapping[str, Any], root: Path) -> Mapping[str, Any]:
    metric = accuracy.get("metric")
    if not isinstance(metric, Mapping) or not isinstance(metric.get("python"), str):
        return accuracy
    return {**accuracy, "metric": {**metric, "python": str(root / metric["python"])}}


def _flatten(table: Mapping[str, Any], prefix: tuple[str, ...]) -> Iterator[str]:
    for key, value in table.items():
        path = (*prefix, key)
        if isinstance(value, Mapping):
            yield from _flatten(value, path)
        else:
            # JSON's scalars and arrays are TOML's too, which is what an override's value is read as.
            yield f"{'.'.join(map(_quote, path))}={json.dumps(value)}"


def _quote(key: str) -> str:
    """A part of a dotted TOML key: names of outputs may hold anything."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)
