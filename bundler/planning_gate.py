"""The accuracy gate of a build: the profile's figures, and for those that it leaves out what fits the model."""

from __future__ import annotations

from bundler.model.facts import ModelFacts
from bundler.model.plan import Decision
from bundler.model.runtime import Tolerance
from bundler.profiles.schema import TargetProfile

FLOAT = Tolerance(absolute=1e-4, relative=1e-3, sqnr_db=40.0)
"""For floating-point models: fusion and other kernels change last bits only (98 dB was the least that we measured over
sixteen networks), so this leaves room for a network a thousand times worse."""

QUANTIZED = Tolerance(absolute=0.05, relative=0.05, sqnr_db=30.0)
"""For models that are quantised already: a value on the edge of a step may round to the next one. 0.05 is one step of
eight bits over a range of 12; 45 dB was the least that we measured."""


def choose_gate(facts: ModelFacts, profile: TargetProfile) -> Tolerance:
    """The gate for one model and one target."""
    asked, fallback = profile.accuracy, QUANTIZED if facts.quantized else FLOAT
    return Tolerance(
        absolute=fallback.absolute if asked.absolute is None else asked.absolute,
        relative=fallback.relative if asked.relative is None else asked.relative,
        sqnr_db=fallback.sqnr_db if asked.sqnr_db is None else asked.sqnr_db,
        cosine=asked.cosine,
        top1_agreement=asked.top1_agreement,
    )


def gate_decision(facts: ModelFacts, profile: TargetProfile) -> Decision:
    """The gate as a decision that people can read."""
    gate = choose_gate(facts, profile)
    choice = f"error up to {gate.absolute:g} + {gate.relative:g} of the reference, SQNR from {gate.sqnr_db:g} dB"
    own = [name for name in ("absolute", "relative", "sqnr_db") if getattr(profile.accuracy, name) is not None]
    reason = f"the profile sets {', '.join(own)}" if own else _reason(facts)
    return Decision(subject="accuracy gate", choice=choice, reason=reason)


def _reason(facts: ModelFacts) -> str:
    return "the model is quantised already, so it rounds in steps" if facts.quantized else "for floating-point models"
