"""What of the golden set a manifest counts: samples, values, and what could not be judged."""

from __future__ import annotations

from bundler.api.assemble import read_references
from bundler.model.codec import decode
from bundler.model.golden_inputs import Weakness
from bundler.model.manifest import GoldenOutput, GoldenRecord
from bundler.model.results import StepOutcome
from bundler.model.runtime import RuntimeConfig

NOT_HELD = "the profile holds it to nothing"


def record_golden(outcome: StepOutcome, config: RuntimeConfig) -> GoldenRecord:
    """Of the step that recorded the golden set, and the gates of the bundle's variants."""
    facts = outcome.facts
    free = {
        port.name
        for port in config.signature.outputs
        if any(not variant.gate.of(port.name).judged for variant in config.variants)
    }
    return GoldenRecord(
        samples=facts["samples"],
        outputs=tuple(
            GoldenOutput(
                name=name,
                elements=known.elements,
                unjudged=NOT_HELD if name in free else known.unjudged,
            )
            for name, known in read_references(facts).items()
        ),
        weaknesses=tuple(decode(Weakness, item) for item in facts.get("weaknesses", ())),
    )
