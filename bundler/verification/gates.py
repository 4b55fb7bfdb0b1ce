"""Judge a comparison by a tolerance. Pure: no file, no runtime."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bundler.model.results import Comparison, OutputComparison
from bundler.model.runtime import Tolerance

NEGLIGIBLE = 1e-6
"""Errors up to here (eight steps of a 32-bit float near one) are rounding: where a whole output is as small as that,
a ratio of signal to noise says nothing of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFailure:
    """One figure of one output that misses its limit. `worst` is what was found, None where nothing could be measured;
    `text` is a line for people.
    """

    output: str
    figure: str
    limit: float | None
    worst: float | None
    text: str


def check_gate(comparison: Comparison, tolerance: Tolerance, unstable: Collection[str] = ()) -> tuple[GateFailure, ...]:
    """Everything that misses the gate; empty when it is met. Of `unstable` outputs only type and shape count."""
    return tuple(
        failure
        for output in comparison.outputs
        for failure in _check_output(output, tolerance, stable=output.name not in unstable)
    )


def _check_output(output: OutputComparison, tolerance: Tolerance, *, stable: bool) -> tuple[GateFailure, ...]:
    if output.mismatch is not None:
        text = f"output {output.name!r}: {output.mismatch}"
        return (GateFailure(output=output.name, figure="mismatch", limit=None, worst=None, text=text),)
    if not stable or output.equal:
        return ()
    negligible = output.max_absolute <= min(NEGLIGIBLE, tolerance.absolute)
    least = (
        ("sqnr_db", "SQNR in dB", output.sqnr_db, tolerance.sqnr_db),
        ("cosine", "cosine similarity", output.cosine, tolerance.cosine),
        ("top1_agreement", "share of unchanged best scores", output.top1_agreement, tolerance.top1_agreement),
    )
    error = _check_error(output, tolerance)
    ratios = () if negligible else least[:2]
    too_low = (_check_least(output.name, *row) for row in (*ratios, least[2]))
    return tuple(failure for failure in (error, *too_low) if failure)


def _check_error(output: OutputComparison, tolerance: Tolerance) -> GateFailure | None:
    """|actual - reference| <= absolute + relative * |reference| for every element."""
    reference, error = worst_element(output, tolerance)
    allowed = tolerance.absolute + tolerance.relative * reference
    if error <= allowed:
        return None
    text = (
        f"output {output.name!r}: error {error:.3g} where the reference is {reference:.3g}, "
        f"at most {allowed:.3g} allowed ({tolerance.absolute:g} + {tolerance.relative:g} of the reference)"
    )
    return GateFailure(output=output.name, figure="error", limit=allowed, worst=error, text=text)


def worst_element(output: OutputComparison, tolerance: Tolerance) -> tuple[float, float]:
    """(reference, error) of the element that exceeds its limit most, both as magnitudes.

    Without an envelope the largest error is taken as if it stood at a reference of zero: never too mild.
    """
    if output.envelope:
        return max(output.envelope, key=lambda point: point[1] - tolerance.relative * point[0])
    return 0.0, output.max_absolute


def _check_least(name: str, figure: str, words: str, found: float | None, least: float | None) -> GateFailure | None:
    if least is None or found is None or found >= least:
        return None
    text = f"output {name!r}: {words} {found:.4g}, at least {least:g} wanted"
    return GateFailure(output=name, figure=figure, limit=least, worst=found, text=text)
