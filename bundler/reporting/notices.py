"""NOTICES: the licences of all third-party software in a bundle, as one text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from bundler.model.proof import Dependency

NOTICES_NAME = "NOTICES"
_RULE = "=" * 78
_STANDARD: Mapping[str, Path] = MappingProxyType({"Apache-2.0": Path(__file__).with_name("apache-2.0.txt")})
"""Licences whose text names no holder of rights, and so is the same for all software that carries none itself."""


def render_notices(name: str, components: Sequence[Dependency]) -> str:
    """The text of NOTICES for the bundle `name`: the components with their licences, and what they have vendored
    themselves, then what the bundle requires, then each licence text of what it contains once.

    The model keeps the user's own licence; the text says so. What others provide brings its licences itself.
    """
    contained = _order(component for component in components if not component.provided_by)
    required = _order(component for component in components if component.provided_by)
    texts = (_licence_section(text, owners) for text, owners in _texts(contained))
    return "\n\n".join([_introduction(name, contained, required), *texts]) + "\n"


def _order(components: Iterator[Dependency]) -> list[Dependency]:
    every = [part for component in components for part in (component, *component.parts)]
    ordered = sorted({(c.name, c.version, c.licence, c.licence_text, c.provided_by): c for c in every}.items())
    return [component for _, component in ordered]


def _introduction(name: str, contained: Sequence[Dependency], required: Sequence[Dependency]) -> str:
    lines = [
        f"Third-party software in {_one_line(name)}",
        "",
        "The model keeps the licence under which you have it; this file does not cover it.",
    ]
    if contained:
        lines += ["This bundle contains:", "", *dict.fromkeys(f"  {_entry(part)}" for part in contained)]
    else:
        lines += ["This bundle contains no third-party software."]
    if required:
        lines += ["", "It requires these, and does not contain them:", ""]
        lines += dict.fromkeys(f"  {_entry(part)}, from {part.provided_by}" for part in required)
    return "\n".join(lines)


def _entry(component: Dependency) -> str:
    return f"{_title(component)}: {_one_line(component.licence) or 'licence not stated'}"


def _texts(entries: Sequence[Dependency]) -> list[tuple[str, list[Dependency]]]:
    """Each licence text with the components that it covers, in the order of the first of them."""
    covered: dict[str, list[Dependency]] = {}
    for entry in entries:
        covered.setdefault(_tidy(entry.licence_text) or _read_standard(entry.licence), []).append(entry)
    return list(covered.items())


def _licence_section(text: str, owners: Sequence[Dependency]) -> str:
    heading = "\n".join([_RULE, *(_title(owner) for owner in owners), _RULE])
    return f"{heading}\n\n{text or 'The package contains no licence text; its licence is named above.'}"


def _read_standard(licence: str) -> str:
    path = _STANDARD.get(licence)
    return _tidy(path.read_text("utf-8")) if path else ""


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def _title(component: Dependency) -> str:
    return _one_line(f"{component.name} {component.version}")


def _one_line(text: str) -> str:
    return " ".join(text.split())
