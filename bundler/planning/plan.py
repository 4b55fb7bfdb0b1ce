"""Pure planning: (model facts, profile, request) -> BuildPlan. Touches no file and measures nothing, so that every
building machine plans the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bundler.model.facts import ModelFacts
from bundler.model.fixing import Fixing, fix_signature, split_sizes
from bundler.model.golden_inputs import GoldenKind
from bundler.model.plan import HOST, MODEL, BuildPlan, Decision, Step
from bundler.model.requirements import FIXED_BY, FixedSize
from bundler.model.shapes import Shape
from bundler.planning.compile import device_environments
from bundler.planning.data import (
    GOLDEN,
    DataPlan,
    DataRequest,
    Seeds,
    find_picture,
    plan_data,
    share_samples,
)
from bundler.planning.devices import computed_loss
from bundler.planning.gate import choose_gate, gate_decision
from bundler.planning.precision import (
    apply_preset,
    asked_method,
    choose_methods,
    may_calibrate,
    method_environments,
    precision_decisions,
)
from bundler.planning.ranges import apply_ranges
from bundler.planning.rules import BakeRule
from bundler.planning.shapes import name_inputs
from bundler.planning.sizes import GivenSizes, settle_sizes, size_decisions, size_notes
from bundler.planning.variants import Draft, baker_of, checked, make_step, plan_variant
from bundler.profiles.methods import AUTO, METHODS, NONE, Loss
from bundler.profiles.outlook import computes_tf32
from bundler.profiles.schema import TargetProfile, Variant

INSPECT_ID = "inspect"

FUSION_ENVIRONMENTS = {"onnxruntime": HOST, "onnxruntime-tools": "onnxruntime-tools"}
"""Where the fusions of each backend run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What the user asked for beside the model and the target.

    `dimensions` fixes dynamic dimensions by name, and `shapes` the sizes of inputs, over those of the profile, of which
    those in `own_dimensions` and `own_shapes` are the user's as well. `command` is what the user ran, as far as a hint
    says it again, and `project` the name of the project file that asks. `format` is one of the emitter's, or None
    for the profile's; `synthetic_count` and `seed` are for the golden set when there are no samples. `methods` are the
    precisions that were chosen by trying, by variant; `left_out` says which variants are not built, and why; `golden`
    what ships of samples.
    """

    dimensions: Mapping[str, int] = field(default_factory=dict)
    format: str | None = None
    samples: DataRequest | None = None
    calibration: DataRequest | None = None
    methods: Mapping[str, str] = field(default_factory=dict)
    synthetic_count: int = 8
    seed: int = 0
    left_out: tuple[Decision, ...] = ()
    own_dimensions: tuple[str, ...] = ()
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    own_shapes: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    project: str = ""
    golden: GoldenKind = "samples"


def inspect_step(name: str) -> Step:
    """The step that comes before any plan: facts from the model's structure."""
    return Step(id=INSPECT_ID, stage="inspect", inputs={"model": MODEL}, options={"name": name}, reason="always")


def make_plan(facts: ModelFacts, profile: TargetProfile, request: PlanRequest) -> BuildPlan:
    """Order the steps for one model and one target. Raises `UsageError` for dimensions that the model has not, for
    shapes that do not fit it, and for a precision that lacks its data.
    """
    profile = apply_preset(profile)
    signature, given = facts.signature, _given_sizes(facts, request)
    settled = settle_sizes(facts, profile, given)
    fixed, fixing = settled.fixed, split_sizes(signature, settled.fixed)
    facts = replace(facts, signature=fix_signature(signature, fixed))
    profile = apply_ranges(profile, facts.signature, settled.ranges)
    methods = choose_methods(profile, request.methods)
    data = _plan_data(facts, profile, replace(fixing, ranges=settled.ranges), request, methods)
    judging = data.evaluation if request.golden == "synthetic" else GOLDEN
    shared, current = _shared_steps(profile, fixed, fixing, judging)
    draft = Draft(
        facts=facts,
        profile=profile,
        data=data,
        shared=shared,
        source=current,
        command=request.command,
        project=request.project,
        picture=find_picture(request.samples, request.calibration),
    )
    variants = [plan_variant(draft, variant, methods[variant.name]) for variant in profile.variants]
    exact = {step.id: choose_gate(facts, profile) for step in shared if step.stage == "compare"}
    return BuildPlan(
        model_name=facts.name,
        target=profile.id,
        steps=(*data.steps, *shared, *(step for variant in variants for step in variant.steps)),
        golden=GOLDEN,
        variants=tuple(variant.plan for variant in variants),
        decisions=(
            *request.left_out,
            *size_decisions(signature, settled),
            *precision_decisions(profile, request.methods),
            *_rule_decisions({variant.plan.name: variant.rule for variant in variants}),
            *_gate_decisions(facts, profile, methods),
        ),
        emitter=profile.bundle.ecosystem,
        format=request.format or profile.bundle.format,
        gates={**exact, **{step: gate for variant in variants for step, gate in variant.gates.items()}},
        fixed_sizes=fixed,
        notes=(*size_notes(facts, profile, fixed, given.shapes), *data.notes),
    )


def _given_sizes(facts: ModelFacts, request: PlanRequest) -> GivenSizes:
    return GivenSizes(
        dimensions=request.dimensions,
        shapes=name_inputs(facts, request.shapes),
        own_dimensions=request.own_dimensions,
        own_shapes=request.own_shapes,
    )


def _plan_data(
    facts: ModelFacts,
    profile: TargetProfile,
    fixing: Fixing,
    request: PlanRequest,
    methods: Mapping[str, str],
) -> DataPlan:
    used = [METHODS[name] for name in methods.values() if name != NONE]
    samples, calibration = request.samples, request.calibration
    calibrates = any(method.needs_calibration for method in used)
    # What is tried automatically must all be judged by the same samples.
    tried = any(asked_method(profile, variant) == AUTO for variant in profile.variants)
    if calibrates or (tried and may_calibrate(profile)):
        samples, calibration = share_samples(samples, calibration)
    return plan_data(
        facts,
        profile,
        fixing,
        Seeds(seed=request.seed, count=request.synthetic_count),
        samples=samples,
        calibration=calibration,
        rounds=bool(used) or profile.accuracy.metric is not None,
        calibrates=calibrates,
        golden=request.golden,
    )


def step_environments(profile: TargetProfile) -> tuple[str, ...]:
    """Names of the environments that steps of a plan for `profile` may run in."""
    profile = apply_preset(profile)
    simplifier = profile.optimization.simplifier
    return tuple(
        dict.fromkeys(
            (
                HOST,
                baker_of(profile),
                *(() if simplifier == NONE else (simplifier,)),
                *(() if profile.fusion.model_type == NONE else (FUSION_ENVIRONMENTS[profile.fusion.backend],)),
                *method_environments(profile),
                *device_environments(profile),
            )
        )
    )


def _shared_steps(
    profile: TargetProfile, fixed: Sequence[FixedSize], fixing: Fixing, judging: str
) -> tuple[list[Step], str]:
    """The steps that all variants share, each followed by its comparison with the set `judging`, and the source of the
    model after them.
    """
    steps: list[Step] = []
    current = MODEL
    if fixed:
        reason = "; ".join(f"{size.name}={size.size} is {FIXED_BY[size.by]}" for size in fixed)
        steps += checked(make_step("fix_dimensions", current, fixing.options(), reason=reason), golden=judging)
        current = "fix_dimensions"
    simplifier = profile.optimization.simplifier
    if simplifier != NONE:
        reason = "the profile asks for it"
        steps += checked(
            make_step("simplify", current, {"tool": simplifier}, reason=reason, environment=simplifier), golden=judging
        )
        current = "simplify"
    if profile.fusion.model_type != NONE:
        steps += checked(_fusion_step(profile, current), golden=judging)
        current = "fuse_transformers"
    return steps, current


def _fusion_step(profile: TargetProfile, source: str) -> Step:
    asked = profile.fusion
    options = {**asked.model_dump(mode="json"), "disabled": list(asked.disabled)}
    environment = FUSION_ENVIRONMENTS[asked.backend]
    step = make_step("fuse_transformers", source, options, reason="the profile asks for it", environment=environment)
    # A preset is for any model, and means its fusions where there is something to fuse.
    return replace(step, optional=profile.optimization.preset != NONE)


def _rule_decisions(rules: Mapping[str, BakeRule]) -> tuple[Decision, ...]:
    """Every variant's decisions; one that is the same for all is told once, the others with the variant's name."""
    found = [(name, decision) for name, rule in rules.items() for decision in rule.decisions]
    shared = [decision for name, decision in found if all(decision in rule.decisions for rule in rules.values())]
    return tuple(
        dict.fromkeys(
            decision if decision in shared else replace(decision, subject=f"{decision.subject} of {name}")
            for name, decision in found
        )
    )


def _gate_decisions(facts: ModelFacts, profile: TargetProfile, methods: Mapping[str, str]) -> tuple[Decision, ...]:
    """The gates of the variants: of what their methods lose, and of what their devices' arithmetic loses beside it."""
    own: dict[str, Loss] = {
        name: METHODS[method].loss if method != NONE else "none" for name, method in methods.items()
    }
    here = _group({name: gate_decision(facts, profile, loss) for name, loss in own.items()})
    device = _group(
        {variant.name: _device_gate(facts, profile, variant, own[variant.name]) for variant in profile.variants}
    )
    return (
        *(_name_gate(decision, "" if len(here) == 1 else f" of {names}") for decision, names in here.items()),
        *(_name_gate(decision, f" of {names} on the device") for decision, names in device.items()),
    )


def _group(found: Mapping[str, Decision | None]) -> dict[Decision, str]:
    """The names that share each decision; those without one are left out."""
    return {
        decision: ", ".join(name for name, other in found.items() if other == decision)
        for decision in found.values()
        if decision is not None
    }


def _device_gate(facts: ModelFacts, profile: TargetProfile, variant: Variant, loss: Loss) -> Decision | None:
    """The gate of the device's answers, where it is another than that of the stages here."""
    computed = computed_loss(profile, variant, loss)
    if choose_gate(facts, profile, computed) == choose_gate(facts, profile, loss):
        return None
    decision = gate_decision(facts, profile, computed)
    if not computes_tf32(profile, variant):
        return decision
    return replace(decision, reason=decision.reason.replace(*_TF32_REASON))


_TF32_REASON = ("FP16 rounds every value", "TF32 keeps 10 bits of what is multiplied")


def _name_gate(decision: Decision, whose: str) -> Decision:
    return replace(decision, subject=f"{decision.subject}{whose}")
