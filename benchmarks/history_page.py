"""The history of all bars as one page without scripts: small charts, missed bars first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path

from bars import Bar
from history import Entry, Point, Series, gather_series, list_machines
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pairs import show_number

PAGE = Path(__file__).parent / "history.html"
TEMPLATES = Path(__file__).parent / "pages"
WIDTH, HEIGHT, EDGE = 220.0, 72.0, 12.0
"""Of a chart, in pixels; no point comes closer than `EDGE` to a side."""
LEAST_SPAN = 0.2
"""Of a chart's vertical axis, as a share of the limit: smaller changes are noise and shall look like it."""
MARKS = ("circle", "square", "triangle", "diamond")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A run on a chart: its median at `y`, its range from `top` to `bottom`, its limit at `limit`; in pixels."""

    x: float
    y: float
    top: float
    bottom: float
    limit: float
    machine: int
    met: bool
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A bar with all its runs, and what is said of the last one; `change` is its change since the run before."""

    section: str
    what: str
    subject: str
    spots: tuple[Spot, ...]
    value: str
    limit: str
    met: bool
    worse: bool
    change: str
    since: str
    until: str

    @property
    def limits(self) -> str:
        """The line of the limit, as an SVG path: it has a step where the limit was changed."""
        middles = [(one.x + two.x) / 2 for one, two in zip(self.spots, self.spots[1:], strict=False)]
        edges = zip(self.spots, [0.0, *middles], [*middles, WIDTH], strict=True)
        return "".join(
            f"{'L' if number else 'M'}{left:.1f},{spot.limit:.1f}H{right:.1f}"
            for number, (spot, left, right) in enumerate(edges)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Charts under one heading. `folded`: shown only on demand."""

    title: str
    charts: tuple[Chart, ...]
    folded: bool = False


def write_page(entries: Sequence[Entry], path: Path = PAGE) -> None:
    """Write the page anew."""
    path.write_text(render_page(entries), encoding="utf-8")


def render_page(entries: Sequence[Entry]) -> str:
    """HTML."""
    machines = list_machines(entries)
    series = gather_series(entries)
    now = [one for one in series if one.current]
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("history.html.j2").render(
        parts=tuple(_divide(series, machines)),
        machines=machines,
        marks=MARKS,
        width=WIDTH,
        height=HEIGHT,
        count=len(now),
        missed=sum(not one.last.met for one in now),
        worse=sum(one.worse for one in now),
        runs=len(entries),
        first=_show_day(entries[0].taken.date) if entries else "",
        last=_show_day(entries[-1].taken.date) if entries else "",
    )


def _divide(series: Sequence[Series], machines: Sequence[str]) -> Iterator[Part]:
    """Missed ones first, the farthest from its limit at the top; the others by section."""
    now = [one for one in series if one.current]
    missed = sorted((one for one in now if not one.last.met), key=lambda one: (not one.worse, -one.excess))
    yield Part(title="Missed in the last run", charts=_draw_all(missed, machines))
    met = sorted((one for one in now if one.last.met), key=lambda one: one.section)
    for section, some in groupby(met, key=lambda one: one.section):
        nearest = sorted(some, key=lambda one: (not one.worse, -one.excess))
        yield Part(title=f"Met: {section}", charts=_draw_all(nearest, machines))
    gone = [one for one in series if not one.current]
    yield Part(title="No longer measured", charts=_draw_all(gone, machines), folded=True)


def _draw_all(series: Iterable[Series], machines: Sequence[str]) -> tuple[Chart, ...]:
    return tuple(_draw(one, machines) for one in series)


def _draw(series: Series, machines: Sequence[str]) -> Chart:
    what, _, subject = series.name.rpartition(": ")
    low, high = _frame([point.bar for point in series.points])
    step = (WIDTH - 2 * EDGE) / max(1, len(series.points) - 1)
    start = EDGE if len(series.points) > 1 else WIDTH / 2
    return Chart(
        section=series.section,
        what=what,
        subject=subject,
        spots=tuple(
            _spot(point, start + number * step, (low, high), machines.index(point.taken.machine))
            for number, point in enumerate(series.points)
        ),
        value=_show(series.last, series.last.median),
        limit=f"{'≥' if series.last.at_least else '≤'} {_show(series.last, series.last.limit)}",
        met=series.last.met,
        worse=series.worse,
        change=_show_change(series),
        since=_show_day(series.points[0].taken.date),
        until=_show_day(series.points[-1].taken.date),
    )


def _frame(bars: Sequence[Bar]) -> tuple[float, float]:
    """The vertical axis: all medians and limits. Ranges may leave it, or a single slow pair would flatten the rest."""
    values = [value for bar in bars for value in (bar.median, bar.limit)]
    low, high = min(values), max(values)
    span = max(high - low, LEAST_SPAN * max(bar.limit for bar in bars))
    middle = (low + high) / 2
    return middle - span / 2, middle + span / 2


def _spot(point: Point, x: float, frame: tuple[float, float], machine: int) -> Spot:
    low, high = frame

    def place(value: float) -> float:
        y = HEIGHT - EDGE - (value - low) / (high - low) * (HEIGHT - 2 * EDGE)
        return round(min(HEIGHT, max(0.0, y)), 1)

    bar = point.bar
    return Spot(
        x=round(x, 1),
        y=place(bar.median),
        top=place(bar.greatest),
        bottom=place(bar.least),
        limit=place(bar.limit),
        machine=machine,
        met=bar.met,
        words=_describe(point),
    )


def _describe(point: Point) -> str:
    """All of a run, for who points at it."""
    bar, taken = point.bar, point.taken
    spread = f"{_show(bar, bar.median)} ({_show(bar, bar.least)}…{_show(bar, bar.greatest)})"
    versions = ", ".join(f"{name} {number}" for name, number in taken.versions.items())
    lines = (
        f"{taken.date.replace('T', ' ').replace('Z', ' UTC')}{f', commit {taken.commit}' if taken.commit else ''}",
        f"{spread}, bar {_show(bar, bar.limit)}: {'met' if bar.met else 'missed'}",
        f"{taken.machine}; load {taken.loads[0]:g} before, {taken.loads[1]:g} after",
        versions,
    )
    return "\n".join(lines)


def _show(bar: Bar, value: float) -> str:
    return f"{value:.2f}" if bar.unit == "times" else f"{show_number(value)} {bar.unit}"


def _show_change(series: Series) -> str:
    if series.before is None:
        return ""
    change = round((series.last.median / series.before.median - 1) * 100) if series.before.median else 0
    return f"{change:+d} %".replace("-", "\N{MINUS SIGN}") if change else "as before"


def _show_day(date: str) -> str:
    return datetime.fromisoformat(date).strftime("%Y-%m-%d")
