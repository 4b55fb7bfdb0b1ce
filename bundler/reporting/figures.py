"""Formats numbers as JSON data and as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

_MINUS = "\N{MINUS SIGN}"
_MANY = 10
"""From this ratio on, the ratio is shown instead of a percentage."""
_TIMES = "\N{MULTIPLICATION SIGN}"
_DASH = "\N{EN DASH}"


def word_figures(value: Any) -> Any:
    """`value` as JSON data, with the strings NaN, Infinity and -Infinity for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): word_figures(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [word_figures(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return name_figure(value)
    return value


def name_figure(value: float) -> str:
    """The name of a number that is not finite, as golden sets spell it."""
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def show_tick(text: str) -> str:
    """A figure as an axis label, without trailing zeros: `10 ms` for `10.0 ms`."""
    number, _, unit = text.partition(" ")
    short = number.rstrip("0").rstrip(".") if "." in number else number
    return short if short == "0" else f"{short} {unit}".strip()


def show_error(value: float | None) -> str:
    """An error in the output's own unit: `3.1e-07`, `0`, or a dash for None."""
    if value is None:
        return _DASH
    return "0" if value == 0 else f"{value:.2g}"


def show_percent(after: float, before: float) -> str:
    """The change from `before` to `after`: a percentage with its sign, `no change`, or a ratio for large changes."""
    if before <= 0:
        return ""
    if after / before >= _MANY:
        return f"{after / before:,.0f}{_TIMES}"
    share = round((after / before - 1) * 100)
    if share == 0:
        return "no change"
    return f"{'+' if share > 0 else _MINUS}{abs(share)} %"
