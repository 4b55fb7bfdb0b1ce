"""Judge a comparison by a gate. Pure: no file, no runtime."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from bundler.model.results import Comparison, OutputComparison
from bundler.model.runtime import Gate, Tolerance

NEGLIGIBLE = 1e-6
"""Errors up to here (eight steps of a 32-bit float near one) are rounding: where a whole output is as small as that,
a ratio of signal to noise says nothing of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFailure:
    """One figure of one output that misses its limit. `worst` is what was found, None where nothing could be measured;
    `text` is a line for people, and `sample` the one that is furthest from its reference (empty where none is known).
    """

    output: str
    figure: str
    limit: float | None
    worst: float | None
    text: str
    sample: str = ""


def check_gate(comparison: Comparison, gate: Gate, unstable: Collection[str] = ()) -> tuple[GateFailure, ...]:
    """Everything that misses the gate, the worst outputs first; empty when it is met. Of `unstable` outputs only type
    and shape count.
    """
    found = [
        failure
        for output in _worst_first(comparison.outputs)
        for failure in _check_output(output, gate.of(output.name), stable=output.name not in unstable)
    ]
    return tuple(found)


def _worst_first(outputs: Collection[OutputComparison]) -> list[OutputComparison]:
    """Those that could not be compared, then the noisiest; otherwise in the model's order."""

    def rank(output: OutputComparison) -> tuple[bool, float]:
        return output.mismatch is None, math.inf if output.sqnr_db is None else output.sqnr_db

    return sorted(outputs, key=rank)


def _check_output(output: OutputComparison, tolerance: Tolerance, *, stable: bool) -> tuple[GateFailure, ...]:
    if not tolerance.judged:
        return ()
    if output.mismatch is not None:
        text = f"output {output.name!r}: {output.mismatch}"
        return (GateFailure(output=output.name, figure="mismatch", limit=None, worst=None, text=text),)
    if not stable or output.equal:
        return ()
    least = (
        ("sqnr_db", "SQNR in dB", output.sqnr_db, tolerance.sqnr_db),
        ("cosine", "cosine similarity", output.cosine, tolerance.cosine),
    )
    rows = ("top1_agreement", "share of unchanged best scores", output.top1_agreement, tolerance.top1_agreement)
    ratios = () if _is_negligible(output, tolerance) else least
    too_low = (_check_least(output, *row) for row in (*ratios, rows))
    found = (_check_error(output, tolerance), *too_low, _check_agreement(output, tolerance))
    return tuple(failure for failure in found if failure)


def _is_negligible(output: OutputComparison, tolerance: Tolerance) -> bool:
    return output.max_absolute <= min(NEGLIGIBLE, math.inf if tolerance.absolute is None else tolerance.absolute)


def _check_error(output: OutputComparison, tolerance: Tolerance) -> GateFailure | None:
    """|actual - reference| <= absolute + relative * |reference| for every element."""
    if tolerance.absolute is None or tolerance.relative is None:
        return None
    reference, error = worst_element(output, tolerance)
    allowed = tolerance.allow(reference)
    if error <= allowed:
        return None
    text = (
        f"error {error:.3g} where the reference is {reference:.3g}, "
        f"at most {allowed:.3g} allowed ({tolerance.absolute:g} + {tolerance.relative:g} of the reference)"
    )
    return _failure(output, "error", allowed, error, text)


def worst_element(output: OutputComparison, tolerance: Tolerance) -> tuple[float, float]:
    """(reference, error) of the element that exceeds its limit most, both as magnitudes.

    Without an envelope the largest error is taken as if it stood at a reference of zero: never too mild.
    """
    if output.envelope:
        return max(output.envelope, key=lambda point: point[1] - (tolerance.relative or 0.0) * point[0])
    return 0.0, output.max_absolute


def _check_least(
    output: OutputComparison, figure: str, words: str, found: float | None, least: float | None
) -> GateFailure | None:
    if least is None or found is None or found >= least:
        return None
    return _failure(output, figure, least, found, f"{words} {found:.4g}, at least {least:g} wanted")


def _check_agreement(output: OutputComparison, tolerance: Tolerance) -> GateFailure | None:
    """Integers, booleans and strings: a share of them must be equal, all where no share is given."""
    least = 1.0 if tolerance.agreement is None else tolerance.agreement
    if output.agreement is None or output.agreement >= least:
        return None
    wanted = (
        ""
        if tolerance.agreement is None
        else f" (share of equal values {output.agreement:.4g}, at least {least:g} wanted)"
    )
    return _failure(output, "agreement", least, output.agreement, f"{output.difference or 'values differ'}{wanted}")


def _failure(output: OutputComparison, figure: str, limit: float, worst: float, text: str) -> GateFailure:
    return GateFailure(
        output=output.name,
        figure=figure,
        limit=limit,
        worst=worst,
        text=f"output {output.name!r}: {text}",
        sample=output.worst_sample,
    )


def describe_failures(comparison: Comparison, failures: Collection[GateFailure]) -> tuple[str, ...]:
    """The failures' lines, and one for each output that says where it is furthest from its reference."""
    outputs = {output.name: output for output in comparison.outputs}
    lines = []
    for name in dict.fromkeys(failure.output for failure in failures):
        lines += [failure.text for failure in failures if failure.output == name]
        worst = outputs[name]
        if worst.worst_sample:
            ratio = "" if worst.worst_sqnr_db is None else f" ({worst.worst_sqnr_db:.4g} dB)"
            lines.append(f"output {name!r}: furthest off in sample {worst.worst_sample!r}{ratio}")
    return tuple(lines)
