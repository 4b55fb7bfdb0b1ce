"""The attempts to choose a precision: latency against accuracy as a chart, and every attempt as a row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from bundler.model.attempts import STATE_TITLES, Attempt, Frontier
from bundler.reporting.claims import doubt_ratio
from bundler.reporting.figures import show_error
from bundler.reporting.page import AttemptRow, Level, Precision, Spot, SpotChart, Stroke
from bundler.reporting.scales import linear_scale
from bundler.support.text import count_things, format_bytes, format_milliseconds

_FIGURES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "sqnr_db": "SQNR dB",
        "cosine": "Cosine",
        "max_absolute": "Max abs",
        "top1_agreement": "Top-1",
        "metric": "Your metric",
    }
)
"""Known figures in the order of the table's columns; others follow under their own names."""
_DRAWN: Final = ("sqnr_db", "top1_agreement", "cosine")
"""Figures for a chart's vertical axis; the first that two attempts have is used."""
_UNCHANGED: Final = "none"
_EQUAL_DB: Final = 100.0
"""From this SQNR in dB on, only float32 rounding is left: drawn as equal."""

_SLOWEST: Final = 3.0
"""Larger ratios are drawn at the edge with their figure, so that one slow attempt does not squeeze all others."""

_BAND: Final = 18.0
"""The height of equal attempts, above the scale; this and all below in pixels."""
_TOP: Final = 48.0
_PLOT: Final = 220.0
_ROOM: Final = 20.0
_ROW: Final = 17.0
"""From one label to the next below it; each has its own row, so that none covers another at any width."""
_LEAST_RADIUS: Final = 5.0
_GREATEST_RADIUS: Final = 16.0


def chart_precisions(frontiers: Sequence[Frontier]) -> tuple[Precision, ...]:
    """One part of the section for each variant whose precision was chosen by measuring."""
    return tuple(_chart_precision(frontier, alone=len(frontiers) == 1) for frontier in frontiers)


def _chart_precision(frontier: Frontier, *, alone: bool) -> Precision:
    names = _name_figures(frontier.attempts)
    unchanged = next((attempt.seconds for attempt in frontier.attempts if attempt.method == _UNCHANGED), None)
    return Precision(
        variant="" if alone else frontier.variant,
        summary=_summarize(frontier),
        timing=_describe_timing(frontier, unchanged),
        chart=_chart(frontier.attempts),
        columns=("Size", "Latency", "Ratio", "CPU time", *(_FIGURES.get(name, name) for name in names)),
        rows=tuple(_row(number, attempt, names, unchanged) for number, attempt in enumerate(frontier.attempts, 1)),
    )


def _describe_timing(frontier: Frontier, unchanged: float | None) -> str:
    timing = f"Latency {frontier.timing}: {frontier.how}."
    if any(attempt.processor_ratio is not None for attempt in frontier.attempts):
        timing += " CPU time is that of all processors together, by the unchanged model's."
    if any(doubt_ratio(attempt.low, attempt.high, attempt.rounds) for attempt in frontier.attempts):
        timing += " A ratio in brackets is not a significant difference: too few rounds, or rounds on both sides of 1."
    return timing if unchanged is None else f"{timing} Milliseconds are the ratio times the unchanged model's latency."


def _summarize(frontier: Frontier) -> str:
    tried = sum(attempt.state != "skipped" for attempt in frontier.attempts)
    passed = sum(attempt.state in {"chosen", "passed"} for attempt in frontier.attempts)
    judged = f"judged on {count_things(frontier.held_out, 'held-out sample')}"
    if frontier.calibration:
        judged += f", none of them among the {frontier.calibration} for calibration"
    text = f"{count_things(tried, 'attempt')}, {passed} of them met the gate, {judged}."
    return f"{text} {frontier.chosen} is used: {frontier.reason}." if frontier.reason else text


def _name_figures(attempts: Sequence[Attempt]) -> tuple[str, ...]:
    given = dict.fromkeys(name for a in attempts for name, value in a.figures.items() if value is not None)
    return (*(name for name in _FIGURES if name in given), *(name for name in given if name not in _FIGURES))


def _row(number: int, attempt: Attempt, names: Sequence[str], unchanged: float | None) -> AttemptRow:
    """Each attempt was timed in turns with the unchanged model, at different times, so only the ratios are comparable:
    the latency shown is the ratio times the unchanged model's latency.
    """
    timed = attempt.seconds is not None and attempt.ratio is not None and unchanged is not None
    seconds = attempt.ratio * unchanged if timed else attempt.seconds  # type: ignore[operator]
    return AttemptRow(
        number=number,
        method=attempt.method,
        title=attempt.title,
        state=attempt.state,
        result=STATE_TITLES[attempt.state],
        figures=(
            _show(attempt.model_bytes, lambda size: format_bytes(round(size))),
            _show(seconds, lambda value: format_milliseconds(1000 * value)),
            _show_measured_ratio(attempt),
            _show(attempt.processor_ratio, _show_ratio),
            *(_show(attempt.figures.get(name), _SHOWN.get(name, _show_plain)) for name in names),
        ),
        reason=attempt.reason,
    )


def _show(value: float | None, show: Callable[[float], str]) -> str:
    return show_error(None) if value is None or not math.isfinite(value) else show(value)


def _show_measured_ratio(attempt: Attempt) -> str:
    """In brackets when it is no significant difference."""
    shown = _show(attempt.ratio, _show_ratio)
    return f"({shown})" if doubt_ratio(attempt.low, attempt.high, attempt.rounds) else shown


def _show_ratio(ratio: float) -> str:
    return f"{ratio:.2f}\N{MULTIPLICATION SIGN}"


def _show_plain(value: float) -> str:
    return f"{value:.4g}"


_SHOWN: Final[Mapping[str, Callable[[float], str]]] = MappingProxyType(
    {
        "sqnr_db": lambda value: f"{value:.1f}",
        "cosine": lambda value: f"{value:.5f}",
        "max_absolute": show_error,
        "top1_agreement": lambda value: f"{value:.1%}",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """An attempt that can be drawn; `value` is None for one that equals the original model."""

    number: int
    attempt: Attempt
    ratio: float
    value: float | None


def _chart(attempts: Sequence[Attempt]) -> SpotChart | None:
    figure = next((name for name in _DRAWN if sum(_read(a, name) is not None for a in attempts) > 1), _DRAWN[0])
    places = [place for number, item in enumerate(attempts, 1) if (place := _place(number, item, figure))]
    if len(places) < 2:  # noqa: PLR2004 - one point alone compares nothing
        return None
    scale = linear_scale((1.0, *(min(place.ratio, _SLOWEST) for place in places)), _show_times)
    levels, height_of = _levels(figure, [place.value for place in places if place.value is not None])
    largest = max((place.attempt.model_bytes or 0 for place in places), default=0)
    spots = [_spot(place, scale.place(place.ratio), height_of(place.value), largest) for place in places]
    height = max(_TOP + _PLOT + _ROOM, _ROW * len(spots) + 2 * _ROOM)
    spots = _spread_labels(spots, height)
    return SpotChart(
        figure=_FIGURES[figure].removesuffix(" dB"),
        scale=scale,
        height=round(height),
        levels=levels,
        unit=scale.place(1.0),
        strokes=_join_best(spots),
        spots=tuple(sorted(spots, key=lambda spot: (spot.state == "chosen", -spot.radius))),
    )


def _read(attempt: Attempt, figure: str) -> float | None:
    value = attempt.figures.get(figure)
    return value if value is not None and math.isfinite(value) else None


def _place(number: int, attempt: Attempt, figure: str) -> _Place | None:
    value, ratio = _read(attempt, figure), attempt.ratio
    if ratio is None or not math.isfinite(ratio):
        return None
    if value is None and attempt.method != _UNCHANGED and attempt.figures.get("max_absolute") != 0:
        return None
    if figure == "sqnr_db" and value is not None and value >= _EQUAL_DB:
        value = None
    return _Place(number=number, attempt=attempt, ratio=ratio, value=value)


def _show_times(ratio: float) -> str:
    return f"{ratio:.3g}\N{MULTIPLICATION SIGN}"


def _levels(figure: str, values: Sequence[float]) -> tuple[tuple[Level, ...], Callable[[float | None], float]]:
    """The labelled heights, and a function from a value to its height, in pixels from the top."""
    if figure == "sqnr_db":
        scale = linear_scale((max(values, default=0.0), 1.0), lambda value: f"{value:.0f} dB")
        low, high, texts = scale.low, scale.high, [(tick.at, tick.text) for tick in scale.ticks]
    else:
        high = max(values, default=1.0)
        low = min(min(values, default=0.0), high - 0.01)
        texts = [(share, f"{low + share / 100 * (high - low):.3f}") for share in (0, 25, 50, 75, 100)]

    def height_of(value: float | None) -> float:
        if value is None:
            return _BAND
        share = min(1.0, max(0.0, (value - low) / (high - low)))
        return round(_TOP + _PLOT * (1 - share), 1)

    equal = f"\N{GREATER-THAN OR EQUAL TO} {_EQUAL_DB:.0f} dB" if figure == "sqnr_db" else "equal"
    levels = [Level(y=round(_TOP + _PLOT * (1 - at / 100), 1), text=text) for at, text in texts]
    return (Level(y=_BAND, text=equal), *levels), height_of


def _spot(place: _Place, x: float, y: float, largest: int) -> Spot:
    attempt = place.attempt
    share = math.sqrt((attempt.model_bytes or 0) / largest) if largest else 0.0
    size = _show(attempt.model_bytes, lambda value: format_bytes(round(value)))
    slow = f" · {_show_times(place.ratio)}" if place.ratio > _SLOWEST else ""
    return Spot(
        x=x,
        y=y,
        radius=round(max(_LEAST_RADIUS, _GREATEST_RADIUS * share), 1),
        state=attempt.state,
        number=place.number,
        label=f"{attempt.method} · {size}{slow}",
        text=f"{attempt.title} ({STATE_TITLES[attempt.state]}): {size}, {_show_ratio(place.ratio)} the latency",
        label_y=y,
    )


def _spread_labels(spots: Sequence[Spot], height: float) -> list[Spot]:
    """Give every label its own row, as near to its bubble as the other labels allow."""
    ordered = sorted(spots, key=lambda spot: (spot.y, -spot.x))
    rows: list[float] = []
    for spot in ordered:
        rows.append(max(spot.y, rows[-1] + _ROW) if rows else spot.y)
    below = height - _ROOM / 2
    for position in reversed(range(len(rows))):
        rows[position] = min(rows[position], below)
        below = rows[position] - _ROW
    return [replace(spot, label_y=round(row, 1)) for spot, row in zip(ordered, rows, strict=True)]


def _join_best(spots: Sequence[Spot]) -> tuple[Stroke, ...]:
    """Lines along the Pareto frontier of latency and accuracy, the fastest first."""
    best: list[Spot] = []
    for spot in sorted(spots, key=lambda spot: (spot.x, spot.y)):
        if not best or spot.y < best[-1].y:
            best.append(spot)
    return tuple(Stroke(x1=a.x, y1=a.y, x2=b.x, y2=b.y) for a, b in itertools.pairwise(best))
