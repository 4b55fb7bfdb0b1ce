"""The accuracy gate of a build: the profile's figures, and for those that it leaves out what fits the model and what is
done to it.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping

from bundler.model.errors import UsageError
from bundler.model.facts import ModelFacts
from bundler.model.plan import Decision
from bundler.model.runtime import Gate, Tolerance
from bundler.profiles.methods import Loss
from bundler.profiles.schema import Figures, TargetProfile

FLOAT = Tolerance(absolute=1e-4, relative=1e-3, sqnr_db=40.0)
"""For floating-point models: fusion and other kernels change last bits only (98 dB was the least that we measured over
sixteen networks), so this leaves room for a network a thousand times worse."""

QUANTIZED = Tolerance(absolute=0.05, relative=0.05, sqnr_db=30.0, agreement=0.98)
"""For models that are quantised already: a value on the edge of a step may round to the next one, and so may integers
that are answers. 0.05 is one step of eight bits over a range of 12; 45 dB was the least that we measured."""

LOSSY: Mapping[Loss, Tolerance] = {
    "half": Tolerance(sqnr_db=35.0, agreement=0.99),
    "bfloat16": Tolerance(sqnr_db=25.0, agreement=0.99),
    "eight-bit": Tolerance(sqnr_db=15.0, agreement=0.95),
    "four-bit": Tolerance(sqnr_db=10.0, agreement=0.9),
}
"""For models that a step has given fewer bits.

No limit on single elements: the worst of a million is always far off, in models that anybody would ship. The noise in
all of them together is what tells a good model from a wrecked one. bfloat16 has three bits fewer than half precision:
a classifier of file types keeps 34.6 dB on an Intel CPU with AMX. Eight bits, measured: a text recogniser reads 96 % of
its lines as before at 26.8 dB and 88 % at 19.0, but 12 % at 6.0 and none at 0.3 (a rival's default); a sentence encoder
whose answers stay of use has 16.4, wrecked ones 1 to 6. A ratio of 15 dB keeps the cosine similarity above
0.984, 10 dB above 0.948. In probabilities it forgives a place that changes between near ties, not one that changes with
confidence: so no limit on top-1 agreement either, which would also judge outputs that are no scores (embeddings). It is
there for those who know that theirs are."""


def choose_gate(facts: ModelFacts, profile: TargetProfile, loss: Loss = "none") -> Gate:
    """The gate for one model and one target after steps that lose so much.

    Raises `UsageError` when the profile sets limits of an output that the model has not.
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
    """`fallback` with the figures that were asked for; `absolute` or `relative` alone means 0 for the other."""
    given = {name: getattr(asked, name) for name in FIGURES if name in asked.model_fields_set}
    found = dataclasses.replace(fallback, **{name: value for name, value in given.items() if value is not None})
    if (found.absolute is None) != (found.relative is None):
        return dataclasses.replace(found, absolute=found.absolute or 0.0, relative=found.relative or 0.0)
    return found


FIGURES = tuple(field.name for field in dataclasses.fields(Tolerance))


def _check_names(facts: ModelFacts, asked: Mapping[str, Figures]) -> None:
    known = [port.name for port in facts.signature.outputs]
    unknown = [name for name in asked if name not in known]
    if not unknown:
        return
    raise UsageError(
        f"{facts.name} has no output {unknown[0]!r}, whose accuracy.outputs sets limits",
        details=(f"its outputs are: {', '.join(map(repr, known)) or 'none'}",),
        hint=_suggest(unknown[0], known),
    )


def _suggest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else "`bundler inspect MODEL` shows every output"


def gate_decision(facts: ModelFacts, profile: TargetProfile, loss: Loss = "none") -> Decision:
    """The gate as a decision that people can read."""
    gate = choose_gate(facts, profile, loss)
    choice = "; ".join((_tell(gate.default), *(f"{name!r}: {_tell(own)}" for name, own in gate.outputs.items())))
    given = [name for name in FIGURES if getattr(profile.accuracy, name) is not None and name != "judged"]
    reason = f"the profile sets {', '.join(given)}" if given else _reason(facts, loss)
    return Decision(subject="accuracy gate", choice=choice, reason=reason)


def _tell(tolerance: Tolerance) -> str:
    if not tolerance.judged:
        return "not judged"
    parts = [
        ""
        if tolerance.absolute is None or tolerance.relative is None
        else f"error up to {tolerance.absolute:g} + {tolerance.relative:g} of the reference",
        "" if tolerance.sqnr_db is None else f"SQNR from {tolerance.sqnr_db:g} dB",
        "" if tolerance.cosine is None else f"cosine similarity from {tolerance.cosine:g}",
        "" if tolerance.top1_agreement is None else f"top-1 agreement from {tolerance.top1_agreement:g}",
        "" if tolerance.agreement is None else f"{tolerance.agreement:g} of integers and strings equal",
    ]
    return ", ".join(part for part in parts if part) or "no limit"


_REASONS: Mapping[Loss, str] = {
    "half": "half precision rounds every value, so the noise in all of them is judged, not the worst one",
    "bfloat16": "the device may compute in bfloat16, so the noise in all answers is judged, not the worst one",
    "eight-bit": "eight bits round every value, so the noise in all of them is judged, not the worst one",
    "four-bit": "four bits round every weight, so the noise in all answers is judged, not the worst one",
}


def _reason(facts: ModelFacts, loss: Loss) -> str:
    if loss != "none":
        return _REASONS[loss]
    return "the model is quantised already, so it rounds in steps" if facts.quantized else "for floating-point models"
