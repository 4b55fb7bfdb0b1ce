"""Load time and latency of the original model and the bundle, with their spread."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bundler.model.measurement import Measurement
from bundler.reporting.claims import compare_medians
from bundler.reporting.data import ComponentReport, summarize_series
from bundler.reporting.models import show_tag
from bundler.reporting.page import Dot, SpreadChart, SpreadRow
from bundler.reporting.scales import Scale, linear_scale
from bundler.support.text import format_milliseconds

_SHOWN_DOTS = 200
"""Largest number of points in a row; a longer series is thinned evenly."""
_ROW_MIDDLE = 18.0
_LANES = (0.0, -6.0, 6.0, -3.0, 3.0)
"""Vertical offsets in pixels that separate points of equal time, the same on every rendering."""


def chart_speed(part: ComponentReport) -> tuple[SpreadChart, ...]:
    """A chart for the load time and one for the latency of each measurement."""
    charts = []
    for measurement in part.measurements:
        suffix = _suffix(part, measurement)
        series = (
            ("Load to first inference", measurement.baseline_opening_ms, measurement.opening_ms),
            ("Steady-state latency", measurement.baseline_latency_ms, measurement.latency_ms),
        )
        others = measurement.others
        charts += [_chart(title + suffix, before, after, others) for title, before, after in series if _finite(after)]
    return tuple(charts)


def _suffix(part: ComponentReport, measurement: Measurement) -> str:
    tag = show_tag(part, measurement.variant)
    return f", {tag}" if tag else ""


def _chart(title: str, before: Sequence[float], after: Sequence[float], others: float | None) -> SpreadChart:
    before, after = _finite(before), _finite(after)
    scale = linear_scale((*before, *after), format_milliseconds)
    verdict, tone = compare_medians(summarize_series(before), summarize_series(after), others)
    rows = [_row("Original model", before, scale, before=True), _row("Bundle", after, scale, before=False)]
    return SpreadChart(
        title=title, verdict=verdict, tone=tone, scale=scale, rows=tuple(row for row in rows if row is not None)
    )


def _finite(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(value for value in values if math.isfinite(value))


def _row(label: str, values: Sequence[float], scale: Scale, *, before: bool) -> SpreadRow | None:
    spread = summarize_series(values)
    if spread is None:
        return None
    return SpreadRow(
        label=label,
        before=before,
        dots=_dots(values, scale),
        low=scale.place(spread.low),
        high=scale.place(spread.high),
        median=scale.place(spread.median),
        value=format_milliseconds(spread.median),
        detail=f"p10 {format_milliseconds(spread.low)}, p90 {format_milliseconds(spread.high)}, {spread.count} runs",
    )


def _dots(values: Sequence[float], scale: Scale) -> tuple[Dot, ...]:
    stride = max(1, -(-len(values) // _SHOWN_DOTS))
    return tuple(
        Dot(x=scale.place(value), y=_ROW_MIDDLE + _LANES[number % len(_LANES)], text=format_milliseconds(value))
        for number, value in enumerate(values[::stride])
    )
