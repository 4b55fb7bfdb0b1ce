"""Checks the result of the user's own metric. Pure: no file, no runtime."""

from __future__ import annotations

from dataclasses import dataclass

from bundler.stages.measure_metric.spec import Facts

ROUNDING = 1e-9
"""A loss of 0.01 is 0.97 less 0.96, which floating-point numbers miss by a little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricGate:
    """`least` is the least value; `drop` is by how much it may be below the original model's. None is no limit."""

    least: float | None = None
    drop: float | None = None


def check_metric(name: str, facts: Facts, gate: MetricGate) -> tuple[str, ...]:
    """What misses the gate, a line each; empty when it is met. `name` is the user's name of the metric."""
    value, reference, samples = facts.value, facts.reference, facts.samples
    found = f"{name}: {value:.6g} over {samples} sample{'' if samples == 1 else 's'}"
    lines = []
    if gate.least is not None and value < gate.least:
        own = f"; the original model has {reference:.6g}" if reference < gate.least else ""
        lines.append(f"{found} (min {gate.least:g}){own}")
    lost = reference - value
    if gate.drop is not None and lost > gate.drop + ROUNDING * max(1.0, abs(reference)):
        own = f"the original model's {reference:.6g}"
        lines.append(f"{found}, {lost:.6g} below {own} (max {gate.drop:g})")
    return tuple(lines)
