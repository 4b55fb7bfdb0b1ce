"""Maps values to positions on a chart, in percent of its width."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bundler.reporting.figures import show_tick

_ROOM = 0.3
"""Margin around the values, in powers of ten, so that none is on an edge (the left edge means zero)."""
_TICKS = 4
"""Approximate number of steps of an axis: more labels would overlap on a phone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A labelled position on an axis; `anchor` keeps the outer labels inside."""

    at: float
    text: str
    anchor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A range of values and its axis."""

    low: float
    high: float
    logarithmic: bool
    ticks: tuple[Tick, ...] = ()

    def place(self, value: float) -> float:
        """The position of `value` in percent, clamped to 0 to 100."""
        if self.logarithmic:
            share = (_log(value) - _log(self.low)) / (_log(self.high) - _log(self.low))
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)


def linear_scale(values: Iterable[float], show: Callable[[float], str]) -> Scale:
    """A scale from zero to a round number above the largest value."""
    greatest = max(values, default=0.0)
    step = _round_step(greatest / _TICKS) if greatest > 0 else 1.0
    count = max(1, math.ceil(greatest / step - 1e-9))
    bare = Scale(low=0.0, high=count * step, logarithmic=False)
    return _with_ticks(bare, [number * step for number in range(count + 1)], show)


def log_scale(values: Iterable[float]) -> Scale:
    """A scale over whole powers of ten that enclose the positive values, at least three of them."""
    exponents = [math.log10(value) for value in values if value > 0]
    low = math.floor(min(exponents, default=-8.0) - _ROOM)
    high = max(math.ceil(max(exponents, default=-2.0) + _ROOM), low + 3)
    bare = Scale(low=10.0**low, high=10.0**high, logarithmic=True)
    stride = max(1, math.ceil((high - low) / _TICKS))
    return _with_ticks(bare, [10.0**power for power in range(low, high + 1, stride)], _show_power)


def _with_ticks(scale: Scale, values: list[float], show: Callable[[float], str]) -> Scale:
    ticks = tuple(_tick(scale.place(value), show_tick(show(value))) for value in values)
    return Scale(low=scale.low, high=scale.high, logarithmic=scale.logarithmic, ticks=ticks)


def _tick(at: float, text: str) -> Tick:
    left, right = 4.0, 96.0
    return Tick(at=at, text=text, anchor="start" if at < left else "end" if at > right else "middle")


def _round_step(rough: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below `rough`."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * (1 - 1e-9))


def _show_power(value: float) -> str:
    return f"1e{round(math.log10(value))}" if value != 1 else "1"


def _log(value: float) -> float:
    return math.log10(max(value, 1e-300))
