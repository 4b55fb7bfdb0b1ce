"""What earlier runs found: one line of JSON a section and run in history.jsonl, and the series of each bar."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bars import Bar
from circumstances import Circumstances
from document import Section

HISTORY = Path(__file__).parent / "history.jsonl"
DIGITS = 4
NOISE = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The bars of one section in one run."""

    section: str
    taken: Circumstances
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One bar in one run."""

    taken: Circumstances
    bar: Bar


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One bar in all runs that have it, by date. `current`: the last run of its section has it."""

    section: str
    name: str
    points: tuple[Point, ...]
    current: bool

    @property
    def last(self) -> Bar:
        """The newest figure."""
        return self.points[-1].bar

    @property
    def before(self) -> Bar | None:
        """The figure before it on the same machine: others say nothing of a change."""
        machine = self.points[-1].taken.machine
        return next((point.bar for point in self.points[-2::-1] if point.taken.machine == machine), None)

    @property
    def worse(self) -> bool:
        """Whether the newest median is beyond all that the run before saw, and by more than `NOISE` of its median."""
        last, before = self.last, self.before
        if before is None:
            return False
        if last.at_least:
            return last.median < min(before.least, before.median / NOISE)
        return last.median > max(before.greatest, before.median * NOISE)

    @property
    def excess(self) -> float:
        """The newest median over its limit, or the inverse where it is to be at least that; above 1 is missed."""
        last = self.last
        over, under = (last.limit, last.median) if last.at_least else (last.median, last.limit)
        return over / under if under else float("inf")


def add_entry(section: Section, taken: Circumstances, path: Path = HISTORY) -> None:
    """Append the bars of a section, if it has any."""
    if section.bars:
        with path.open("a", encoding="utf-8") as stream:
            stream.write(encode_entry(Entry(section=section.name, taken=taken, bars=section.bars)))


def encode_entry(entry: Entry) -> str:
    """A line; figures have four significant digits."""
    loads = [round(load, 1) for load in entry.taken.loads]
    taken = asdict(entry.taken) | {"seconds": round(entry.taken.seconds), "loads": loads}
    content = {"section": entry.section, **taken, "bars": [_encode_bar(bar) for bar in entry.bars]}
    return json.dumps(content, ensure_ascii=False) + "\n"


def _encode_bar(bar: Bar) -> dict[str, object]:
    figures = {name: float(f"{getattr(bar, name):.{DIGITS}g}") for name in ("median", "least", "greatest", "limit")}
    side = {"at_least": True} if bar.at_least else {}
    return {"name": bar.name, **figures, "unit": bar.unit, **side}


def read_history(path: Path = HISTORY) -> tuple[Entry, ...]:
    """All entries by date; none where the file is missing."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return tuple(sorted(map(_decode_entry, lines), key=lambda entry: entry.taken.date))


def _decode_entry(line: str) -> Entry:
    content = json.loads(line)
    section, bars = content.pop("section"), content.pop("bars")
    taken = Circumstances(**content | {"loads": tuple(content["loads"])})
    return Entry(section=section, taken=taken, bars=tuple(Bar(**bar) for bar in bars))


def gather_series(entries: Sequence[Entry]) -> tuple[Series, ...]:
    """One for each section and name, in the order in which they first appeared."""
    found: dict[tuple[str, str], list[Point]] = {}
    for entry in entries:
        for bar in entry.bars:
            found.setdefault((entry.section, bar.name), []).append(Point(taken=entry.taken, bar=bar))
    newest = {entry.section: entry.taken for entry in entries}
    return tuple(
        Series(section=section, name=name, points=tuple(points), current=points[-1].taken is newest[section])
        for (section, name), points in found.items()
    )


def list_machines(entries: Iterable[Entry]) -> tuple[str, ...]:
    """In the order in which they first appeared."""
    return tuple(dict.fromkeys(entry.taken.machine for entry in entries))
