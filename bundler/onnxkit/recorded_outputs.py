"""Collect the figures of all outputs during recording, and return them as facts and notes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from bundler.model.golden_inputs import Weakness
from bundler.model.reference import ReferenceFigures
from bundler.model.signature import Signature
from bundler.model.stage import Note
from bundler.onnxkit.reference_tally import ReferenceTally
from bundler.onnxkit.value_files import Value


class Recorded:
    """Collects all outputs sample by sample; the integers of `quantities` count as numbers."""

    def __init__(self, signature: Signature, quantities: Collection[str]) -> None:
        self.signature = signature
        self._tallies = {
            port.name: ReferenceTally(name=port.name, quantity=port.name in quantities) for port in signature.outputs
        }

    def add(self, outputs: Mapping[str, Value]) -> None:
        """Add one sample."""
        for name, value in outputs.items():
            self._tallies[name].add(value)

    def figures(self, unstable: Collection[str]) -> list[ReferenceFigures]:
        """The figures, in the model's order."""
        return [tally.figures(stable=name not in unstable) for name, tally in self._tallies.items()]


def doubts_of(references: Sequence[ReferenceFigures]) -> tuple[Weakness, ...]:
    """Doubts about the significance of the comparison, by output."""
    return tuple(
        Weakness(kind="output", name=reference.name, text=f"output {reference.name!r}: {doubt}")
        for reference in references
        for doubt in reference.doubts
    )


MAX_LISTED = 4
"""Weaknesses that the screen lists; the manifest has all."""


def weakness_notes(weaknesses: Sequence[Weakness]) -> Iterator[Note]:
    """One warning for the weaknesses of the inputs, except that they are seeded, which is reported separately."""
    texts = [weakness.text for weakness in weaknesses if weakness.kind != "synthetic"]
    if texts:
        more = f"; and {len(texts) - MAX_LISTED} more (see the report)" if len(texts) > MAX_LISTED else ""
        yield Note(text=f"weak golden set: {'; '.join(texts[:MAX_LISTED])}{more}", level="warning")


def reference_notes(references: Sequence[ReferenceFigures]) -> Iterator[Note]:
    """A warning for each output that cannot be judged, or only weakly."""
    for reference in references:
        if reference.unjudged:
            text = f"output {reference.name!r} cannot be compared with this golden set: {reference.unjudged}"
            yield Note(text=text, level="warning")
        for doubt in reference.doubts:
            yield Note(text=f"weak golden set: output {reference.name!r}: {doubt}", level="warning")
