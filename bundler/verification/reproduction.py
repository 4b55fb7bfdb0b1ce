"""Derives a variant's gate for the golden set when a larger set of samples has judged its precision."""

from __future__ import annotations

from dataclasses import replace

from bundler.model.results import Comparison, OutputComparison
from bundler.model.runtime import Gate, Tolerance

NOISE_DB = 3.0
"""Allowance for the rounding of other kernels: twice the noise power that was measured at build time."""

ANGLE = 2.0
"""The same allowance for the cosine similarity: its distance from 1 may double."""

PLACES = 2 / 16
"""The additional share of the golden set's sixteen samples whose top-1 class may change."""


def fit_gate(gate: Gate, found: Comparison) -> Gate:
    """`gate` for the few samples of the golden set.

    `gate` has been resolved for its outputs (`bundler.model.gates.resolve_gate`). A share or a ratio over hundreds of
    samples may be missed by sixteen of them, so each such limit is what was found there, less what other kernels
    change, where that is lower. Limits on single elements hold for every sample.
    """
    outputs = {output.name: _fit(gate.of(output.name), output) for output in found.outputs}
    changed = {name: tolerance for name, tolerance in outputs.items() if tolerance != gate.default}
    return Gate(default=gate.default, outputs={**gate.outputs, **changed})


def _fit(tolerance: Tolerance, found: OutputComparison) -> Tolerance:
    cosine = None if found.cosine is None else 1 - ANGLE * (1 - found.cosine)
    return replace(
        tolerance,
        sqnr_db=_lower(tolerance.sqnr_db, _quieter(found.sqnr_db)),
        low_sqnr_db=_lower(tolerance.low_sqnr_db, _quieter(found.low_sqnr_db)),
        worst_sqnr_db=_lower(tolerance.worst_sqnr_db, _quieter(found.worst_sqnr_db)),
        cosine=_lower(tolerance.cosine, None if cosine is None else max(-1.0, cosine)),
        top1_agreement=_lower(tolerance.top1_agreement, _less(found.top1_agreement)),
        agreement=_lower(tolerance.agreement, _less(found.agreement)),
    )


def _quieter(ratio: float | None) -> float | None:
    return None if ratio is None else ratio - NOISE_DB


def _less(share: float | None) -> float | None:
    return None if share is None else max(0.0, share - PLACES)


def _lower(limit: float | None, found: float | None) -> float | None:
    return limit if limit is None or found is None else min(limit, found)
