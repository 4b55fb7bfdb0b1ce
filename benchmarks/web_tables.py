"""What was taken of visits, and its tables."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from bars import Bar, set_bar
from document import Table
from pairs import Pairs, show_ratio, show_seconds

BYTES_BAR, FIRST_BAR, SECOND_BAR, STEADY_BAR = 0.6, 0.8, 0.5, 1.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """First and second visit of a page: seconds to the first inference, bytes on the wire, what the pages said."""

    first: float
    second: float
    first_bytes: int
    second_bytes: int
    answers: tuple[tuple[str, int], ...]
    reported: tuple[dict[str, Any], dict[str, Any]]


@dataclass(slots=True, kw_only=True)
class Taken:
    """What was measured of one model: `rounds` by circumstance and page, `steady` seconds of a call by page."""

    model: str
    ours: str
    theirs: tuple[str, ...]
    rounds: dict[str, dict[str, list[Round]]] = field(default_factory=dict)
    steady: dict[str, list[float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def pair(self, circumstance: str, page: str, visit: str) -> Pairs:
        """Seconds of our `first` or `second` visits beside those of `page`."""
        rounds = self.rounds[circumstance]
        ours, theirs = (tuple(getattr(one, visit) for one in rounds[name]) for name in (self.ours, page))
        return Pairs(ours=ours, theirs=theirs)

    def weigh(self, circumstance: str, page: str, visit: str = "first_bytes") -> float:
        """Bytes of a visit."""
        return statistics.median(getattr(one, visit) for one in self.rounds[circumstance][page])

    def figures(self) -> dict[str, Any]:
        """The raw figures."""
        rounds = {
            name: {page: [_encode(one) for one in taken] for page, taken in pages.items()}
            for name, pages in self.rounds.items()
        }
        return {"rounds": rounds, "steady": self.steady}


def _encode(one: Round) -> dict[str, Any]:
    return {
        "first": one.first,
        "second": one.second,
        "first_bytes": one.first_bytes,
        "second_bytes": one.second_bytes,
        "answers": one.answers,
        "reported": one.reported,
    }


def tabulate(title: str, taken: Sequence[Taken]) -> list[Table]:
    """All tables of one contest."""
    if not taken:
        return []
    names = dict.fromkeys(name for one in taken for name in one.rounds)
    times = [_time_table(title, [one for one in taken if name in one.rounds], name) for name in names]
    return [_bytes_table(title, taken), *times, _steady_table(title, taken)]


def _bytes_table(title: str, taken: Sequence[Taken]) -> Table:
    rows = []
    for one in taken:
        squeezed, *_, plain = one.rounds
        for page in one.theirs:
            ours, theirs = one.weigh(squeezed, one.ours), one.weigh(squeezed, page)
            bare = one.weigh(plain, one.ours) / one.weigh(plain, page)
            again = (one.weigh(squeezed, name, "second_bytes") for name in (one.ours, page))
            rows.append(
                (
                    one.model,
                    _name(page),
                    _megabytes(ours),
                    _megabytes(theirs),
                    f"{ours / theirs:.2f}",
                    f"{BYTES_BAR:g}",
                    set_bar(f"{title}, bytes: {_subject(one, page)}", [ours / theirs], BYTES_BAR),
                    f"{_megabytes(one.weigh(plain, one.ours))} / {_megabytes(one.weigh(plain, page))}: {bare:.2f}",
                    " / ".join(_megabytes(size) for size in again),
                )
            )
    columns = ("model", "beside", "bundle", "by hand", "ratio", "bar", "", "not compressed", "second visit")
    return Table(title=f"{title}: bytes on the wire, headers included", columns=columns, rows=tuple(rows))


def _time_table(title: str, taken: Sequence[Taken], circumstance: str) -> Table:
    rows = []
    for one in taken:
        for page in one.theirs:
            cells: list[str | Bar] = [one.model, _name(page)]
            for visit, bar in (("first", FIRST_BAR), ("second", SECOND_BAR)):
                pairs = one.pair(circumstance, page, visit)
                cells += [show_seconds(pairs.ours), show_seconds(pairs.theirs), show_ratio(pairs)]
                name = f"{title}, {visit} visit, {circumstance}: {_subject(one, page)}"
                cells += [set_bar(name, pairs.ratios, bar, said=f"{bar:g}, ")]
            rows.append(tuple(cells))
    columns = ("model", "beside", "first visit", "by hand", "ratio", "bar", "second visit", "by hand", "ratio", "bar")
    return Table(title=f"{title}: navigation to first inference, {circumstance}", columns=columns, rows=tuple(rows))


def _steady_table(title: str, taken: Sequence[Taken]) -> Table:
    rows = []
    for one in taken:
        for page in one.theirs:
            pairs = Pairs(ours=tuple(one.steady[one.ours]), theirs=tuple(one.steady[page]))
            verdict = set_bar(f"{title}, steady: {_subject(one, page)}", pairs.ratios, STEADY_BAR)
            cells = (show_seconds(pairs.ours), show_seconds(pairs.theirs), show_ratio(pairs), f"{STEADY_BAR:g}")
            rows.append((one.model, _name(page), *cells, verdict))
    columns = ("model", "beside", "bundle", "by hand", "ratio", "bar", "")
    return Table(title=f"{title}: a call, steady", columns=columns, rows=tuple(rows))


def _subject(one: Taken, page: str) -> str:
    return f"{one.model} beside {PurePosixPath(page).stem}"


def _name(page: str) -> str:
    return f"`{PurePosixPath(page).stem}`"


def _megabytes(size: float) -> str:
    return f"{size / 1e6:.2f} MB" if size >= 10_000 else f"{size / 1000:.1f} kB"  # noqa: PLR2004 - 0.01 MB
