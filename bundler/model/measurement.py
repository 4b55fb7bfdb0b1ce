"""Opening and latency of a bundle beside a plain session on the untouched model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One variant beside a plain session on the untouched model, on the same machine in the same run.

    `opening_ms` is from opening to the first answer, `latency_ms` one steady call; one entry a repetition, in
    milliseconds; empty where it was not measured. `others` is the share of the machine's processors that other programs
    kept busy meanwhile, None where that is not known. `name` says what was measured (`golden sample 0`).
    """

    name: str
    variant: str
    opening_ms: tuple[float, ...] = ()
    latency_ms: tuple[float, ...] = ()
    baseline_opening_ms: tuple[float, ...] = ()
    baseline_latency_ms: tuple[float, ...] = ()
    others: float | None = None
