"""What a benchmark answers, and how it becomes Markdown.

RESULTS.md keeps one section a subject; a run replaces its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bars import Bar

RESULTS = Path(__file__).parent / "RESULTS.md"

PREAMBLE = """# Results

Written by `make benchmarks` (`.venv/bin/python benchmarks/run.py`); `--only NAME` repeats one section. In every
comparison A and B alternate within one run. Figures are medians, with minimum and maximum in brackets; ratios are
medians of the ratios of pairs. A benchmark never fails on a time: the limit ("bar") is shown beside the figure. Each
section states when it was measured and the load of the machine: under high load single times say little, while ratios
are still useful. How each bar stood in earlier runs is in [history.html](history.html).
"""

Row = tuple[str | Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table with its heading; every row has as many cells as `columns`. A cell that is a bar shows its verdict."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    title: str = ""

    def render(self) -> str:
        """Markdown."""
        lines = [f"### {self.title}\n"] if self.title else []
        lines += [_row(self.columns), _row(["---"] * len(self.columns)), *(_row(row) for row in self.rows)]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The result of one subject. `figures` are the raw ones, for `--json`."""

    name: str
    title: str
    method: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def bars(self) -> tuple[Bar, ...]:
        """All bars of its tables."""
        return tuple(cell for table in self.tables for row in table.rows for cell in row if isinstance(cell, Bar))

    def render(self, circumstances: object) -> str:
        """Markdown, from its heading on."""
        parts = [f"## {self.name}: {self.title}\n", f"{self.method}\n", f"{circumstances}\n"]
        parts += [table.render() for table in self.tables]
        parts += ["".join(f"- {note}\n" for note in self.notes)] if self.notes else []
        return "\n".join(parts)


def _row(cells: Sequence[str | Bar]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def update_results(names: Sequence[str], rendered: dict[str, str]) -> None:
    """Write `rendered` sections into RESULTS.md, in the order of `names`; those that were not measured stay."""
    old = _split(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    sections = {**old, **rendered}
    RESULTS.write_text("\n".join([PREAMBLE, *(sections[name] for name in names if name in sections)]), encoding="utf-8")


def _split(text: str) -> dict[str, str]:
    parts = re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]
    return {part[3:].split(":", 1)[0]: part.rstrip("\n") + "\n" for part in parts}
