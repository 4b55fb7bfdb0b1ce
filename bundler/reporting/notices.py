"""NOTICES: the licences of all third-party software in a bundle, as one text."""

from __future__ import annotations

from collections.abc import Sequence

from bundler.model.proof import Dependency

NOTICES_NAME = "NOTICES"
_RULE = "=" * 78


def render_notices(name: str, components: Sequence[Dependency]) -> str:
    """The text of NOTICES for the bundle `name`: the components with their licences, and what they have vendored
    themselves, then each licence text once.

    The model keeps the user's own licence; the text says so.
    """
    every = [part for component in components for part in (component, *component.parts)]
    ordered = sorted({(c.name, c.version, c.licence, c.licence_text): c for c in every}.items())
    entries = [component for _, component in ordered]
    parts = [_introduction(name, entries), *(_licence_section(text, owners) for text, owners in _texts(entries))]
    return "\n\n".join(parts) + "\n"


def _introduction(name: str, entries: Sequence[Dependency]) -> str:
    lines = [
        f"Third-party software in {_one_line(name)}",
        "",
        "The model keeps the licence under which you have it; this file does not cover it.",
    ]
    if not entries:
        return "\n".join([*lines, "This bundle contains no third-party software."])
    lines += ["This bundle contains:", ""]
    return "\n".join([*lines, *(f"  {_title(entry)}: {_one_line(entry.licence) or 'not stated'}" for entry in entries)])


def _texts(entries: Sequence[Dependency]) -> list[tuple[str, list[Dependency]]]:
    """Each licence text with the components that it covers, in the order of the first of them."""
    covered: dict[str, list[Dependency]] = {}
    for entry in entries:
        covered.setdefault(_tidy(entry.licence_text), []).append(entry)
    return list(covered.items())


def _licence_section(text: str, owners: Sequence[Dependency]) -> str:
    heading = "\n".join([_RULE, *(_title(owner) for owner in owners), _RULE])
    return f"{heading}\n\n{text or 'The package contains no licence text; its licence is named above.'}"


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def _title(component: Dependency) -> str:
    return _one_line(f"{component.name} {component.version}")


def _one_line(text: str) -> str:
    return " ".join(text.split())
