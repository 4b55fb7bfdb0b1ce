"""Checks a comparison against a gate. Pure: no file, no runtime."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from bundler.model.reference import EXACT, SIGNIFICANT, ReferenceFigures
from bundler.model.results import Comparison, OutputComparison
from bundler.model.runtime import Gate, Tolerance

NEGLIGIBLE = 1e-6
"""Errors up to here (eight ULPs of a float32 near one) are rounding: for an output that small, a signal-to-noise ratio
says nothing about the model."""

UNIT = 1.0
"""The scale for the error of an output whose reference is zero everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFailure:
    """One figure of one output that misses its limit. `worst` is the measured value, None where it was not measurable;
    `text` is a message, and `sample` the one that is furthest from its reference (empty where none is known).
    """

    output: str
    figure: str
    limit: float | None
    worst: float | None
    text: str
    sample: str = ""


def check_gate(comparison: Comparison, gate: Gate, unstable: Collection[str] = ()) -> tuple[GateFailure, ...]:
    """Everything that misses the gate, the worst outputs first; empty when it is met. Only type and shape of `unstable`
    outputs are checked.
    """
    found = [
        failure
        for output in _worst_first(comparison.outputs)
        for failure in _check_output(output, gate.of(output.name), stable=output.name not in unstable)
    ]
    return tuple(found)


def _worst_first(outputs: Collection[OutputComparison]) -> list[OutputComparison]:
    """Outputs that could not be compared first, then by SQNR, lowest first."""

    def rank(output: OutputComparison) -> tuple[bool, float]:
        return output.mismatch is None, math.inf if output.sqnr_db is None else output.sqnr_db

    return sorted(outputs, key=rank)


def resolve_gate(gate: Gate, references: Mapping[str, ReferenceFigures]) -> Gate:
    """`gate` with a tolerance for each output whose limits depend on its recorded values."""
    found = {name: resolve_tolerance(gate.of(name), known) for name, known in references.items()}
    shipped = {
        name: replace(tolerance, typical_sqnr_db=None, waives_rounding=True) for name, tolerance in found.items()
    }
    default = replace(
        gate.default, scores_top1_agreement=None, typical_sqnr_db=None, scales=False, waives_rounding=True
    )
    own = {name: tolerance for name, tolerance in shipped.items() if name in gate.outputs or tolerance != default}
    return replace(gate, default=default, outputs={**gate.outputs, **own})


def resolve_tolerance(tolerance: Tolerance, known: ReferenceFigures) -> Tolerance:
    """The limits for an output with these recorded values, without limits on figures that cannot be measured."""
    asked = tolerance.top1_agreement
    scores = tolerance.scores_top1_agreement if asked is None and known.scores else asked
    found = replace(tolerance, top1_agreement=scores, scores_top1_agreement=None, scales=False)
    if tolerance.scales and tolerance.absolute is not None:
        found = replace(found, absolute=tolerance.absolute * max(1.0, known.peak))
    if not known.numeric:
        return found
    if known.quantity and found.agreement is not None:
        # Rounded numbers may land on the next integer where steps before them lose precision.
        absolute = None if found.absolute is None else found.absolute + 1
        found = replace(found, agreement=0.0, absolute=absolute)
    return found if known.signal is not None else _hold_constant(found, known)


def _hold_constant(tolerance: Tolerance, known: ReferenceFigures) -> Tolerance:
    """A constant without its mean has no signal, so its error is compared with its own magnitude."""
    found = replace(tolerance, sqnr_db=None, low_sqnr_db=None, worst_sqnr_db=None, typical_sqnr_db=None)
    if found.absolute is not None or tolerance.sqnr_db is None:
        return found
    scale = known.peak if known.peak > SIGNIFICANT else UNIT
    return replace(found, absolute=scale * 10 ** (-tolerance.sqnr_db / 20), relative=0.0)


def _check_output(output: OutputComparison, tolerance: Tolerance, *, stable: bool) -> tuple[GateFailure, ...]:
    if not tolerance.judged:
        return ()
    if output.mismatch is not None:
        text = f"output {output.name!r}: {output.mismatch}"
        return (GateFailure(output=output.name, figure="mismatch", limit=None, worst=None, text=text),)
    if not stable or output.equal:
        return ()
    if output.reference is not None:
        tolerance = resolve_tolerance(tolerance, output.reference)
    ratios = () if tolerance.waives_rounding and is_rounding(output, tolerance) else _RATIOS
    too_low = (_check_least(output, tolerance, *row) for row in (*ratios, _TYPICAL, _ROWS))
    found = (_check_error(output, tolerance), *too_low, _check_agreement(output, tolerance))
    return tuple(failure for failure in found if failure)


_RATIOS = (
    ("sqnr_db", "SQNR {} dB"),
    ("low_sqnr_db", "SQNR of the lowest tenth of the samples {} dB"),
    ("worst_sqnr_db", "SQNR of the worst sample {} dB"),
    ("cosine", "cosine similarity {}"),
)
_TYPICAL = ("typical_sqnr_db", "SQNR of the input-dependent part {} dB")
"""Never exempt as rounding: compared with a fill value of a billion every error is rounding."""
_ROWS = ("top1_agreement", "top-1 agreement {}")


def is_rounding(output: OutputComparison, tolerance: Tolerance) -> bool:
    """Whether no error is more than float32 rounding or a negligible value: ratios then say nothing about the model."""
    # The sample with the smallest signal decides: rounding of a large output may exceed it.
    peak = output.reference.quiet_peak if output.reference else 0.0
    return output.max_absolute <= min(max(NEGLIGIBLE, EXACT / 2 * peak), tolerance.allow(peak))


def _check_error(output: OutputComparison, tolerance: Tolerance) -> GateFailure | None:
    """|actual - reference| <= absolute + relative * |reference| for every element."""
    if tolerance.absolute is None or tolerance.relative is None:
        return None
    reference, error = worst_element(output, tolerance)
    allowed = tolerance.allow(reference)
    if error <= allowed:
        return None
    text = (
        f"error {error:.3g} where the reference is {reference:.3g} "
        f"(max {allowed:.3g}: {tolerance.absolute:g} + {tolerance.relative:g} of the reference)"
    )
    return _failure(output, "error", allowed, error, text)


def worst_element(output: OutputComparison, tolerance: Tolerance) -> tuple[float, float]:
    """(reference, error) of the element that exceeds its limit most, both as magnitudes.

    Without an envelope a reference of zero is assumed for the largest error, which is the strictest case.
    """
    if output.envelope:
        return max(output.envelope, key=lambda point: point[1] - (tolerance.relative or 0.0) * point[0])
    return 0.0, output.max_absolute


def _check_least(output: OutputComparison, tolerance: Tolerance, figure: str, words: str) -> GateFailure | None:
    least, found = getattr(tolerance, figure), getattr(output, figure)
    if found is None and figure == "sqnr_db" and least is not None:
        return _check_unmeasured(output, least)
    if least is None or found is None or found >= least:
        return None
    if figure == "top1_agreement":
        return _failure(output, figure, least, found, f"{words.format(_in_percent(found))} (min {_in_percent(least)})")
    return _failure(output, figure, least, found, f"{words.format(f'{found:.4g}')} (min {least:g})")


def _in_percent(share: float) -> str:
    """Rounded down: nothing that is below a limit is shown as if it met it."""
    return f"{math.floor(share * 10_000 + 1e-6) / 100:g}%"


def _check_unmeasured(output: OutputComparison, least: float) -> GateFailure | None:
    """A ratio that is missing although there is noise must not pass."""
    if not output.max_absolute or (output.reference is not None and output.reference.signal is not None):
        return None
    text = f"error {output.max_absolute:.3g}, and the reference has no signal to compare it with"
    return _failure(output, "sqnr_db", least, output.max_absolute, text)


def _check_agreement(output: OutputComparison, tolerance: Tolerance) -> GateFailure | None:
    """Integers, booleans and strings: a share of them must be equal, all where no share is given."""
    least = 1.0 if tolerance.agreement is None else tolerance.agreement
    if output.agreement is None or output.agreement >= least:
        return None
    wanted = (
        ""
        if tolerance.agreement is None
        else f" (equal values {_in_percent(output.agreement)}, min {_in_percent(least)})"
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
    """The failures' messages, and for each output the sample that is furthest from its reference."""
    outputs = {output.name: output for output in comparison.outputs}
    lines = []
    for name in dict.fromkeys(failure.output for failure in failures):
        lines += [failure.text for failure in failures if failure.output == name]
        worst = outputs[name]
        if worst.worst_sample:
            ratio = "" if worst.worst_sqnr_db is None else f" (SQNR {worst.worst_sqnr_db:.4g} dB)"
            lines.append(f"output {name!r}: worst sample {worst.worst_sample!r}{ratio}")
    return tuple(lines)
