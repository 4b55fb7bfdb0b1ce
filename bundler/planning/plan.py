"""Pure planning: (settled profile, request) -> ComponentPlan. Reads no file and measures nothing, so that every
building machine makes the same plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bundler.model.facts import ModelFacts
from bundler.model.plan import HOST, MODEL, ComponentPlan, Decision, Step
from bundler.model.requirements import FIXED_BY
from bundler.model.signature import Signature
from bundler.model.stage import Note
from bundler.model.state import StateLink, check_state, doubt_state
from bundler.planning.compile import device_environments
from bundler.planning.data import (
    GOLDEN,
    DataPlan,
    Seeds,
    plan_data,
    record_original,
    share_samples,
)
from bundler.planning.devices import computed_loss
from bundler.planning.gate import choose_gate, gate_decision
from bundler.planning.precision import (
    asked_method,
    choose_methods,
    may_calibrate,
    method_environments,
    precision_decisions,
)
from bundler.planning.request import PlanRequest
from bundler.planning.rules import OptimizationRule
from bundler.planning.settle import SettledProfile, foresee_profile
from bundler.planning.traits import computes_tf32
from bundler.planning.variants import Draft, checked, make_step, optimizer_of, plan_variant
from bundler.profiles.methods import AUTO, METHODS, NONE, Loss
from bundler.profiles.schema import TargetProfile, Variant

FUSION_ENVIRONMENTS = {"onnxruntime": HOST, "onnxruntime-tools": "onnxruntime-tools"}
"""The environment of each fusion backend."""


def make_plan(settled: SettledProfile, request: PlanRequest) -> ComponentPlan:
    """Order the steps for one component and one target. Raises `UsageError` for sizes that a provider does not
    support, and for a precision without its data.
    """
    facts, profile = settled.facts, settled.profile
    check_state(facts.signature, request.state, request.asker)
    methods = choose_methods(profile, request.methods)
    data = record_original(_plan_data(settled, request, methods), request.renamed)
    judging = data.evaluation if request.golden == "synthetic" else GOLDEN
    shared, current = _shared_steps(settled, judging)
    draft = Draft(
        facts=facts,
        profile=profile,
        data=data,
        shared=shared,
        source=current,
        asker=request.asker,
    )
    variants = [plan_variant(draft, variant, methods[variant.name]) for variant in profile.variants]
    exact = {step.id: choose_gate(facts, profile) for step in shared if step.stage == "compare"}
    return ComponentPlan(
        name=request.component,
        model_name=facts.name,
        steps=(*data.steps, *shared, *(step for variant in variants for step in variant.steps)),
        golden=GOLDEN,
        variants=tuple(variant.plan for variant in variants),
        decisions=(
            *settled.left_out,
            *settled.size_decisions,
            *precision_decisions(profile, request.methods),
            *_rule_decisions({variant.plan.name: variant.rule for variant in variants}),
            *_gate_decisions(facts, profile, methods),
        ),
        gates={**exact, **{step: gate for variant in variants for step, gate in variant.gates.items()}},
        fixed_sizes=settled.fixed,
        notes=(*settled.notes, *data.notes, *_state_notes(facts.signature, request.state)),
        state=request.state,
    )


def _state_notes(signature: Signature, links: Sequence[StateLink]) -> tuple[Note, ...]:
    return tuple(Note(text=text, level="warning") for text in doubt_state(signature, links))


def _plan_data(settled: SettledProfile, request: PlanRequest, methods: Mapping[str, str]) -> DataPlan:
    profile = settled.profile
    used = [METHODS[name] for name in methods.values() if name != NONE]
    samples, calibration = request.samples, request.calibration
    calibrates = any(method.needs_calibration for method in used)
    # All automatic attempts must be judged by the same samples.
    tried = any(asked_method(profile, variant) == AUTO for variant in profile.variants)
    if not request.state and (calibrates or (tried and may_calibrate(profile))):
        samples, calibration = share_samples(samples, calibration)
    return plan_data(
        settled.facts,
        profile,
        settled.fixing,
        Seeds(seed=request.seed, count=request.synthetic_count, rounds=bool(used) or tried),
        samples=samples,
        calibration=calibration,
        rounds=bool(used) or profile.accuracy.metric is not None,
        calibrates=calibrates,
        golden=request.golden,
        state=request.state,
    )


def step_environments(profile: TargetProfile) -> tuple[str, ...]:
    """Names of the environments that steps of a plan for the resolved `profile` may run in. Raises `ProfileError`."""
    profile = foresee_profile(profile)
    simplifier = profile.optimization.simplifier
    return tuple(
        dict.fromkeys(
            (
                HOST,
                optimizer_of(profile),
                *(() if simplifier == NONE else (simplifier,)),
                *(() if profile.fusion.model_type == NONE else (FUSION_ENVIRONMENTS[profile.fusion.backend],)),
                *method_environments(profile),
                *device_environments(profile),
            )
        )
    )


def _shared_steps(settled: SettledProfile, judging: str) -> tuple[list[Step], str]:
    """The steps shared by all variants, each followed by its comparison with the set `judging`, and the source of the
    resulting model.
    """
    profile, steps, current = settled.profile, list[Step](), MODEL
    if settled.fixed:
        reason = "; ".join(f"{size.name}={size.size} is {FIXED_BY[size.by]}" for size in settled.fixed)
        options = replace(settled.fixing, ranges={}).options()  # a range does not change the model
        steps += checked(make_step("fix_dimensions", current, options, reason=reason), golden=judging)
        current = "fix_dimensions"
    simplifier = profile.optimization.simplifier
    if simplifier != NONE:
        reason = "set by the profile"
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
    step = make_step("fuse_transformers", source, options, reason="set by the profile", environment=environment)
    # A preset applies to any model, so its fusions are optional.
    return replace(step, optional=profile.optimization.preset != NONE)


def _rule_decisions(rules: Mapping[str, OptimizationRule]) -> tuple[Decision, ...]:
    """Every variant's decisions; one that all share is listed once, the others with the variant's name."""
    found = [(name, decision) for name, rule in rules.items() for decision in rule.decisions]
    shared = [decision for name, decision in found if all(decision in rule.decisions for rule in rules.values())]
    return tuple(
        dict.fromkeys(
            decision if decision in shared else replace(decision, subject=f"{decision.subject} of {name}")
            for name, decision in found
        )
    )


def _gate_decisions(facts: ModelFacts, profile: TargetProfile, methods: Mapping[str, str]) -> tuple[Decision, ...]:
    """The gates of the variants: for the loss of their methods, and for that of their devices' arithmetic."""
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
    """The names that share each decision; names without one are omitted."""
    return {
        decision: ", ".join(name for name, other in found.items() if other == decision)
        for decision in found.values()
        if decision is not None
    }


def _device_gate(facts: ModelFacts, profile: TargetProfile, variant: Variant, loss: Loss) -> Decision | None:
    """The gate of the device's outputs, if it differs from that of the stages here."""
    computed = computed_loss(profile, variant, loss)
    if choose_gate(facts, profile, computed) == choose_gate(facts, profile, loss):
        return None
    decision = gate_decision(facts, profile, computed)
    if not computes_tf32(profile, variant):
        return decision
    return replace(decision, reason=decision.reason.replace(*_TF32_REASON))


_TF32_REASON = ("FP16 rounds every value", "TF32 keeps 10 bits of each factor")


def _name_gate(decision: Decision, whose: str) -> Decision:
    return replace(decision, subject=f"{decision.subject}{whose}")
