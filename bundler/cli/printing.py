"""All output to terminals and logs goes through here: escaped and truncated once.

Text comes from models, bundles, profiles, samples and tools, and may hold anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import typer

from bundler.cli.answers import note_printed
from bundler.model.codec import encode
from bundler.model.errors import OutputError
from bundler.support.text import visible

_HEAD_WIDTH = 9
"""Characters of the longest heading, `Unchecked`."""

LONGEST_LINE = 2000
"""Characters of a line. A sentence on several variants and why each was not run has some hundreds."""

_OBEYED = re.compile(r"##(?=[\w-]*\[)|^\s*:(?=:)")
"""Commands that CI services execute from log lines: `::set-env`, `##[group]`, `##vso[…]`, `##teamcity[…]`."""


def echo(line: str = "", *, err: bool = False) -> None:
    """Print one line, escaped and truncated, on standard output or, with `err`, on standard error."""
    _write(printable(line, LONGEST_LINE) + "\n", err=err)


def echo_row(head: str, text: str) -> None:
    """Print a line of a summary, with its heading in a column of its own; an empty one continues the line before."""
    echo(f"  {head:<{_HEAD_WIDTH}} {text}")


def echo_rows(lines: Iterable[str]) -> None:
    """Print `Heading: text` lines as rows."""
    for line in lines:
        head, _, text = line.partition(": ")
        echo_row(head, text)


def echo_lines(lines: Iterable[str], *, err: bool = False) -> None:
    """Print each line as `echo` does."""
    for line in lines:
        echo(line, err=err)


def echo_document(text: str, *, err: bool = False) -> None:
    """Print a document (JSON, TOML) in full; control characters are escaped as in JSON."""
    _write(_escape_as_json(text if text.endswith("\n") else f"{text}\n"), err=err)


def print_json(value: Any) -> None:
    """One JSON document. Paths become text."""
    echo_document(render_json(value, indent=2))


def render_json(value: Any, *, indent: int | None = None) -> str:
    """`value` as JSON without control sequences for terminals or logs; parses back to the same value."""
    text = json.dumps(encode(value), indent=indent, default=str, ensure_ascii=False)
    return _escape_as_json(text).replace("##", "#\\u0023")


def printable(text: str, limit: int = 200) -> str:
    """`text` on one line without control sequences, at most `limit` characters.

    Control characters, line breaks, bidirectional marks and unencodable characters are escaped.
    """
    plain = visible(text[: limit + 1])
    safe = _OBEYED.sub(lambda found: f"{found[0][:-1]}\\x{ord(found[0][-1]):02x}", plain)
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"


def find_output_error(error: Exception) -> OutputError | None:
    """The error for what the parser's library could not print on standard output; None for any other."""
    place = error.__traceback__
    while place and place.tb_next:
        place = place.tb_next
    echoed = place is not None and place.tb_frame.f_code is typer.echo.__code__
    return explain_output(error, err=False) if echoed and isinstance(error, OSError) else None


def _write(text: str, *, err: bool) -> None:
    """Print it. Raises `OutputError` where it cannot be written; a reader that went away is another matter."""
    try:
        typer.echo(text, nl=False, err=err)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise explain_output(error, err=err) from error
    note_printed(text, err=err)


def explain_output(error: OSError, *, err: bool) -> OutputError:
    """The error for standard output or, with `err`, standard error that takes no more."""
    stream = "standard error" if err else "standard output"
    return OutputError(f"cannot write to {stream}: {error.strerror}", hint="free space on that disk, and try again")


def _escape_as_json(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
