"""Every key of a schema as tables: its type, its default, and its docstring."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bundler.catalogue.tables import code, table


def describe_sections(root: type[BaseModel]) -> list[str]:
    """A heading and a table for `root` and each section in it."""
    lines: list[str] = []
    for path, section in _sections(root, ""):
        lines += ["", f"## `{path}`" if path else "## Top level", "", _flow(section.__doc__)]
        lines += ["", *table(("Key", "Takes", "Default", "Meaning"), _field_rows(section))]
    return lines


def _sections(section: type[BaseModel], path: str) -> Iterator[tuple[str, type[BaseModel]]]:
    yield path, section
    for name, field in section.model_fields.items():
        inner = _inner_section(field.annotation)
        if inner:
            yield from _sections(inner, f"{path}.{name}" if path else name)


def _inner_section(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_inner_section, typing.get_args(annotation))), None)


def _field_rows(section: type[BaseModel]) -> Iterator[tuple[str, ...]]:
    properties = section.model_json_schema(ref_template="{model}")["properties"]
    for name, field in section.model_fields.items():
        yield code(name), _takes(properties[name]), _default(field), _flow(field.description)


def _takes(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(code(str(value)) for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_takes(option) for option in schema["anyOf"] if option.get("type") != "null")
    if "$ref" in schema:
        return "table"
    if schema.get("type") == "array":
        inner = _takes(schema["items"])
        return "array of tables" if inner == "table" else f"array of {inner}"
    names = {
        "string": "text",
        "boolean": "true or false",
        "integer": "whole number",
        "number": "number",
        "object": "table",
    }
    return names[schema["type"]]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None or isinstance(field.default, BaseModel) or field.default in ({}, (), ""):
        return ""
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    return code(json.dumps(value))


def _flow(text: str | None) -> str:
    return " ".join((text or "").split())
