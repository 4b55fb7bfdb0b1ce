"""The manifest's record of the golden set: samples, values, and outputs that could not be judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bundler.model.manifest import GoldenOutput, GoldenRecord
from bundler.model.plan import ComponentPlan
from bundler.model.results import StepOutcome
from bundler.model.runtime import RuntimeComponent
from bundler.planning.data import EVALUATION
from bundler.stages.record_golden.spec import Facts

NOT_HELD = "the profile sets no limit for it"


def record_golden(
    plan: ComponentPlan, outcomes: Mapping[str, StepOutcome], component: RuntimeComponent
) -> GoldenRecord:
    """The record, from the steps that recorded the golden set and the samples that judge, and the variants' gates."""
    facts = outcomes[plan.golden].read_facts(Facts)
    judging = outcomes.get(EVALUATION)
    free = {
        port.name
        for port in component.signature.outputs
        if any(not variant.gate.of(port.name).judged for variant in component.variants)
    }
    return GoldenRecord(
        samples=facts.samples,
        outputs=tuple(
            GoldenOutput(
                name=known.name,
                elements=known.elements,
                unjudged=NOT_HELD if known.name in free else known.unjudged,
            )
            for known in facts.references
        ),
        weaknesses=facts.weaknesses,
        inputs=_kind(plan, facts),
        judging=judging.read_facts(Facts).samples if judging is not None else 0,
    )


def _kind(plan: ComponentPlan, facts: Facts) -> Literal["samples", "seeded", "like-samples"]:
    if plan.step(plan.golden).options.get("alike"):
        return "like-samples"
    return "seeded" if facts.synthetic else "samples"


def describe_golden(golden: GoldenRecord) -> str:
    """The content of `golden/`, for whoever gets the bundle."""
    count = f"{golden.samples} {{}}{'' if golden.samples == 1 else 's'}"
    if golden.inputs == "samples":
        return f"The golden set holds {count.format('sample')} that were given to the build, without their names."
    if golden.inputs == "like-samples":
        what = count.format("seeded input")
        return f"The golden set holds {what} and none of the {golden.judging} samples that judged the build."
    return f"The golden set holds {count.format('seeded input')}; no samples were given to the build."
