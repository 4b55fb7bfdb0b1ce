"""The accuracy gate of a build: the profile's figures, and defaults that depend on the model and its quantisation."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from bundler.model.errors import UsageError
from bundler.model.facts import ModelFacts
from bundler.model.plan import Decision
from bundler.model.runtime import Gate, Tolerance
from bundler.profiles.methods import Loss
from bundler.profiles.schema import Figures, TargetProfile

FLOAT = Tolerance(
    absolute=1e-4,
    relative=1e-3,
    sqnr_db=40.0,
    low_sqnr_db=35.0,
    worst_sqnr_db=30.0,
    scores_top1_agreement=0.99,
    scales=True,
)
"""For floating-point models: fusion and other kernels change last bits only. The lowest SQNR measured over sixteen
networks is 98 dB."""

QUANTIZED = Tolerance(
    absolute=0.05,
    relative=0.05,
    sqnr_db=30.0,
    low_sqnr_db=20.0,
    worst_sqnr_db=15.0,
    typical_sqnr_db=8.0,
    scores_top1_agreement=0.98,
    agreement=0.98,
    scales=True,
)
"""For models that are already quantised: a value at a rounding boundary, or an integer output, may differ by one step.
0.05 is one int8 step over a range of 12; the lowest SQNR measured is 45 dB."""


def _lossy(*decibels: float, scores: float, agreement: float) -> Tolerance:
    """Limits in dB over all samples, in nine of ten, in each, and without the constant part."""
    over_all, low, worst, typical = decibels
    return Tolerance(
        sqnr_db=over_all,
        low_sqnr_db=low,
        worst_sqnr_db=worst,
        typical_sqnr_db=typical,
        scores_top1_agreement=scores,
        agreement=agreement,
    )


LOSSY: Mapping[Loss, Tolerance] = {
    "half": _lossy(30.0, 25.0, 15.0, 15.0, scores=0.99, agreement=0.99),
    "bfloat16": _lossy(25.0, 20.0, 12.0, 12.0, scores=0.98, agreement=0.98),
    "eight-bit": _lossy(15.0, 10.0, 5.0, 8.0, scores=0.95, agreement=0.97),
    "four-bit": _lossy(10.0, 6.0, 3.0, 5.0, scores=0.9, agreement=0.9),
}
"""For models quantised by the build.

No limit on single elements: the largest error of a million is high even in good models. Noise over the set and in each
sample separates good models from broken ones. The source of the limits, and the models that meet or miss them, are in
benchmarks/RESULTS.md ("Gates")."""


def choose_gate(facts: ModelFacts, profile: TargetProfile, loss: Loss = "none") -> Gate:
    """The gate for one model and one target after steps with this precision loss.

    Raises `UsageError` when the profile sets limits for an output that the model lacks.
    """
    asked = profile.accuracy
    _check_names(facts, asked.outputs)
    default = _over(_fallback(facts, loss), asked)
    return Gate(default=default, outputs={name: _over(default, figures) for name, figures in asked.outputs.items()})


def _fallback(facts: ModelFacts, loss: Loss) -> Tolerance:
    if loss != "none":
        return LOSSY[loss]
    return QUANTIZED if facts.quantized else FLOAT


def _over(fallback: Tolerance, asked: Figures) -> Tolerance:
    """`fallback` with the profile's figures; `absolute` or `relative` alone means 0 for the other."""
    names = [name for name in FIGURES if name in asked.model_fields_set]
    given = {name: value for name in names if (value := getattr(asked, name)) is not None}
    found = dataclasses.replace(_follow(fallback, given), **given)
    if given.keys() & _RATIOS:
        found = dataclasses.replace(found, waives_rounding=False)
    if "absolute" in given or "relative" in given:
        found = dataclasses.replace(found, scales=False)
    if (found.absolute is None) != (found.relative is None):
        return dataclasses.replace(found, absolute=found.absolute or 0.0, relative=found.relative or 0.0)
    return found


def _follow(fallback: Tolerance, given: Mapping[str, Any]) -> Tolerance:
    """Where only the limit over all samples is given, the limits for single samples and without the constant part keep
    their distance from it.
    A limit on top-1 agreement is for every output, and needs none for scores beside it.
    """
    wanted, usual = given.get("sqnr_db"), fallback.sqnr_db
    if wanted is not None and usual is not None:
        moved = {
            name: value + wanted - usual
            for name in ("low_sqnr_db", "worst_sqnr_db", "typical_sqnr_db")
            if (value := getattr(fallback, name)) is not None
        }
        fallback = dataclasses.replace(fallback, **moved)
    return dataclasses.replace(fallback, scores_top1_agreement=None) if "top1_agreement" in given else fallback


_RATIOS = {"sqnr_db", "low_sqnr_db", "worst_sqnr_db", "cosine"}
"""Limits that are usually waived for rounding errors."""

_DERIVED = ("scores_top1_agreement", "scales", "waives_rounding")
"""Fields of a tolerance that a profile does not set."""

FIGURES = tuple(field.name for field in dataclasses.fields(Tolerance) if field.name not in _DERIVED)


def _check_names(facts: ModelFacts, asked: Mapping[str, Figures]) -> None:
    known = [port.name for port in facts.signature.outputs]
    unknown = [name for name in asked if name not in known]
    if not unknown:
        return
    raise UsageError(
        f"{facts.name} has no output {unknown[0]!r}, for which accuracy.outputs sets limits",
        details=(f"its outputs are: {', '.join(map(repr, known)) or 'none'}",),
        hint=_suggest(unknown[0], known),
    )


def _suggest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else "`bundler inspect MODEL` shows every output"


def gate_decision(facts: ModelFacts, profile: TargetProfile, loss: Loss = "none") -> Decision:
    """The gate as a readable decision."""
    gate = choose_gate(facts, profile, loss)
    choice = "; ".join(
        (_describe(gate.default), *(f"{name!r}: {_describe(own)}" for name, own in gate.outputs.items()))
    )
    given = [name for name in FIGURES if getattr(profile.accuracy, name) is not None and name != "judged"]
    reason = f"the profile sets {', '.join(given)}" if given else _reason(facts, loss)
    return Decision(subject="accuracy gate", choice=choice, reason=reason)


def _describe(tolerance: Tolerance) -> str:
    if not tolerance.judged:
        return "not judged"
    parts = [
        ""
        if tolerance.absolute is None or tolerance.relative is None
        else f"max error {tolerance.absolute:g} + {tolerance.relative:g} of the reference",
        _describe_ratios(tolerance),
        "" if tolerance.cosine is None else f"cosine similarity at least {tolerance.cosine:g}",
        "" if tolerance.top1_agreement is None else f"top-1 agreement at least {tolerance.top1_agreement * 100:g}%",
        ""
        if tolerance.scores_top1_agreement is None
        else f"top-1 agreement of scores at least {tolerance.scores_top1_agreement * 100:g}%",
        "" if tolerance.agreement is None else f"equal integers and strings at least {tolerance.agreement * 100:g}%",
    ]
    return ", ".join(part for part in parts if part) or "no limit"


def _describe_ratios(tolerance: Tolerance) -> str:
    rows = (
        (tolerance.sqnr_db, ""),
        (tolerance.low_sqnr_db, " in nine of ten samples"),
        (tolerance.worst_sqnr_db, " in each sample"),
        (tolerance.typical_sqnr_db, " in the input-dependent part"),
    )
    parts = [f"{limit:g} dB{where}" for limit, where in rows if limit is not None]
    return f"SQNR at least {', '.join(parts)}" if parts else ""


_REASONS: Mapping[Loss, str] = {
    "half": "FP16 rounds every value, so noise is judged over the set and in each sample, not the worst value",
    "bfloat16": "bfloat16 rounds every value, so noise is judged over the set and in each sample, not the worst value",
    "eight-bit": "int8 rounds every value, so noise is judged over the set and in each sample, not the worst value",
    "four-bit": "int4 rounds every weight, so noise is judged over the set and in each sample, not the worst value",
}


def _reason(facts: ModelFacts, loss: Loss) -> str:
    if loss != "none":
        return _REASONS[loss]
    return "the model is quantised already, so it rounds in steps" if facts.quantized else "for floating-point models"
