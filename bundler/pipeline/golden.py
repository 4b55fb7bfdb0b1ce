"""The manifest's record of the golden set: samples, values, and outputs that could not be judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from bundler.model.golden_inputs import Weakness
from bundler.model.manifest import GoldenOutput, GoldenRecord, Manifest
from bundler.model.plan import ComponentPlan
from bundler.model.results import StepOutcome
from bundler.model.runtime import RuntimeComponent
from bundler.planning.data import CALIBRATED, EVALUATION
from bundler.reporting.accuracy import describe_doubts
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
        weaknesses=(*facts.weaknesses, *_find_overlap(plan)),
        inputs=_kind(plan, facts),
        judging=judging.read_facts(Facts).samples if judging is not None else 0,
        stream=bool(plan.state),
        sizes={tried.label: tried.sizes for tried in facts.tried_dimensions if tried.sizes},
    )


def _find_overlap(plan: ComponentPlan) -> Iterator[Weakness]:
    """A stream cannot be split into steps that calibrate and others that judge."""
    steps = {step.id: step for step in plan.steps}
    calibrated, judged = steps.get(CALIBRATED), steps[plan.golden]
    if plan.state and calibrated is not None and calibrated.inputs.get("samples", "") == judged.inputs.get("samples"):
        yield Weakness(kind="calibrates", name="", text="the steps that judge the model also calibrate it")


def _kind(plan: ComponentPlan, facts: Facts) -> Literal["samples", "seeded", "like-samples"]:
    if plan.step(plan.golden).options.get("alike"):
        return "like-samples"
    return "seeded" if facts.synthetic else "samples"


def describe_golden_sets(manifest: Manifest) -> Iterator[str]:
    """The content of `golden/` and what it cannot show, by component, for the people who get the bundle."""
    for component in manifest.components:
        if component.golden is not None:
            whose = "" if manifest.sole else f"{component.name}: "
            yield f"{whose}{_describe_golden(component.golden)}"
            for doubt in describe_doubts(component, "synthetic"):
                yield f"{whose}Not shown by the golden set: {doubt}."


def _describe_golden(golden: GoldenRecord) -> str:
    count = f"{golden.samples} {{}}{'' if golden.samples == 1 else 's'}{', the steps of one stream' * golden.stream}"
    if golden.inputs == "samples":
        what = count.format("sample")
        given = f"{what}, which were" if golden.stream else f"{what} that were"
        return f"The golden set holds {given} given to the build, without their names."
    if golden.inputs == "like-samples":
        what = count.format("seeded input")
        return f"The golden set holds {what} and none of the {golden.judging} samples that judged the build."
    return f"The golden set holds {count.format('seeded input')}; no samples were given to the build."
