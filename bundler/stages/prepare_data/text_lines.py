"""Texts in files, one per line: counted first, then read one at a time."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bundler.model.codec import parse_json
from bundler.model.errors import UsageError
from bundler.stages.prepare_data.dataset import UnreadableError
from bundler.support.text import visible

MAX_LINE_BYTES: Final = 1_000_000
"""Limit for one line: a longer one shows that the file is not text."""


def iterate_lines(path: Path, name: str) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers from 1. Raises `UsageError` for a file that is not text."""
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b""), 1):
                if len(line) > MAX_LINE_BYTES:
                    hint = "put one text on each line"
                    raise UsageError(f"{name}:{number} has more than {MAX_LINE_BYTES:,} bytes in a line", hint=hint)
                text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if text.strip():
                    yield number, text.rstrip(b"\r\n")
    except OSError as error:
        raise UsageError(f"{name} cannot be read", details=(error.strerror or str(error),)) from error


def decode_line(line: bytes, *, key: str | None) -> str:
    """The text of a line; with `key`, that of the JSON object on it. Raises `UnreadableError`."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"it is not UTF-8 (byte {error.start + 1} of the line)") from error
    return text if key is None else _take(text, key)


def _take(text: str, key: str) -> str:
    try:
        data = parse_json(text)
    except ValueError as error:
        raise UnreadableError(f"it is not JSON: {str(error).partition(chr(10))[0]}") from error
    if not isinstance(data, dict):
        raise UnreadableError("it is not a JSON object")
    found = data.get(key)
    if not isinstance(found, str):
        near = difflib.get_close_matches(key, [name for name, value in data.items() if isinstance(value, str)], n=1)
        meant = f" (did you mean {visible(near[0])!r}?)" if near else ""
        raise UnreadableError(f"it has no text under {key!r}{meant}; set the key with json_key")
    if not found.strip():
        raise UnreadableError(f"its text under {key!r} is empty")
    try:
        found.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UnreadableError(f"its text under {key!r} holds half of a surrogate pair") from error
    return found
