"""What commands print on standard output."""

from __future__ import annotations

import json
from typing import Any

import typer

from bundler.model.codec import encode

KILO = 1000.0

LONGEST_LINE = 2000
"""Characters of a sentence that names several variants and why each was not run."""


def print_json(value: Any) -> None:
    """One JSON document. Paths become text; what is no text in one (a file name that is not UTF-8) is escaped."""
    text = json.dumps(encode(value), indent=2, default=str, ensure_ascii=False)
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        text = json.dumps(encode(value), indent=2, default=str)
    typer.echo(text)


def megabytes(size: int) -> str:
    """`6.6 MB`, `640 kB`, `12 B`: bytes for people, in decimal units."""
    if size >= KILO**3:
        return f"{size / KILO**3:.2f} GB"
    if size >= KILO**2:
        return f"{size / KILO**2:.1f} MB"
    return f"{size / KILO:.0f} kB" if size >= KILO else f"{size} B"


def printable(text: str, limit: int = 200) -> str:
    """`text` from a model, safe to print on a terminal: control characters escaped, and not endless."""
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"
