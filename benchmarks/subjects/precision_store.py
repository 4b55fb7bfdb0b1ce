"""Findings on disk, a file for each piece of work: a run that was cut off goes on where it stopped."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bundler.model.codec import decode, encode  # noqa: E402 - the repository is on the path from here on

T = TypeVar("T")
SHOWN = 240
"""Characters of a finding on the screen; the file has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Dataclasses by name, below `folder`. Without `resume` nothing is recalled, but all is kept for a later run."""

    folder: Path
    resume: bool

    def recall_or_make(self, kind: type[T], name: str, make: Callable[[], T]) -> T:
        """What an earlier run found under `name`, else what `make` finds now. What `make` raises passes through."""
        path = self.folder / f"{re.sub(r'[^A-Za-z0-9]+', '-', name)}.json"
        if self.resume and path.exists():
            return decode(kind, json.loads(path.read_text(encoding="utf-8")))
        found = make()
        self.folder.mkdir(parents=True, exist_ok=True)
        passing = path.with_suffix(".passing")
        passing.write_text(json.dumps(encode(found), indent=1, default=str), encoding="utf-8")
        passing.replace(path)
        return found


class Diary:
    """Writes every single figure to `precision.jsonl` while the run goes on, and tells it on standard error."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "precision.jsonl"
        self._began = time.monotonic()
        self._path.write_text("", encoding="utf-8")

    def note(self, case: str, who: str, what: str, value: Any) -> None:
        """One finding."""
        entry = json.dumps({"case": case, "who": who, "what": what, "value": value}, default=str)
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(f"{entry}\n")
        self.tell(f"  {case}: {who}: {what} {'' if value is None else value}")

    def tell(self, text: str) -> None:
        """A line with the minutes since the beginning."""
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        print(f"{minutes:3}:{seconds:02} {' '.join(text.split())[:SHOWN]}", file=sys.stderr, flush=True)
