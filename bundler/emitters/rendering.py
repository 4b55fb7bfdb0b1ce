"""From a template folder and a context to files: what all emitters share."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bundler.emitters.verified import POINTER
from bundler.emitters.writing import copy_tree, write_text
from bundler.model.errors import DefectError
from bundler.support import text as escapes
from bundler.support.data import data_root

if TYPE_CHECKING:
    from jinja2 import Environment

EPOCH = 1
"""The state of the agreement between emitters and templates; a template of another epoch is refused."""

FILTERS = {
    "bytes": escapes.format_bytes,
    "docstring": escapes.python_docstring,
    "html": escapes.html_text,
    "js": escapes.javascript_string,
    "jskey": escapes.javascript_key,
    "jsdoc": escapes.javascript_comment,
    "json": escapes.json_string,
    "kdoc": escapes.kdoc_text,
    "kotlin": escapes.kotlin_string,
    "literal": escapes.python_literal,
    "markdown": escapes.markdown_text,
    "names": escapes.python_names,
    "shorten": escapes.shorten,
    "thousands": "{:,}".format,
    "toml": escapes.toml_string,
    "tuple": escapes.python_tuple,
    "xml": escapes.xml_text,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A template folder with the index that its `template.toml` declares: source path to target path."""

    folder: Path
    static: Mapping[str, str]
    rendered: Mapping[str, str]


def load_template(name: str) -> Template:
    """The template of an ecosystem. Raises `DefectError` when its epoch is not ours."""
    folder = data_root("templates") / name
    data = tomllib.loads((folder / "template.toml").read_text("utf-8"))
    if data["epoch"] != EPOCH:
        raise DefectError(f"template {name} is of epoch {data['epoch']}, this bundler writes epoch {EPOCH}")
    return Template(folder=folder, static=data["static"], rendered=data["rendered"])


def write_project(
    template: Template,
    context: Mapping[str, Any],
    names: Mapping[str, str],
    folder: Path,
    without: Collection[str] = (),
) -> None:
    """Copy the static folders, but for the paths `without` in them, and render the templates into `folder`; `names`
    fills the places in target paths.
    """
    for source, target in template.static.items():
        copy_tree(template.folder / source, folder / target.format_map(names), without)
    environment = make_environment(template.folder)
    for source, target in template.rendered.items():
        write_text(folder / target.format_map(names), environment.get_template(source).render(context))


def compile_templates(name: str) -> None:
    """Load and compile the templates of an ecosystem before they are needed."""
    template = load_template(name)
    environment = make_environment(template.folder)
    for source in template.rendered:
        environment.get_template(source)


@functools.cache
def make_environment(folder: Path) -> Environment:
    """Jinja for templates that make code: a name that is missing is an error, and nothing is escaped by itself."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (heavy; only builds need it)

    environment = Environment(
        loader=FileSystemLoader([folder, folder.parent]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (the output is no HTML; every place has the filter of its own language)
    )
    environment.filters.update(FILTERS)
    environment.globals["verification"] = POINTER
    return environment
