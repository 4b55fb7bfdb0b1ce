"""Pure planning: (model facts, profile, request) -> BuildPlan. Touches no file and measures nothing, so that every
building machine plans the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bundler.model.errors import UsageError
from bundler.model.facts import ModelFacts
from bundler.model.plan import HOST, MODEL, SAMPLES, BuildPlan, Decision, Step, VariantPlan
from bundler.model.runtime import ProviderEntry
from bundler.planning_gate import gate_decision
from bundler.planning_rules import DISABLE_ALL, BakeRule, choose_baking
from bundler.planning_web import choose_web_baking
from bundler.profiles.schema import TargetProfile, Variant
from bundler.providers.registry import find_provider

INSPECT_ID = "inspect"

REHEARSAL = {"graph_optimization_level": DISABLE_ALL}
"""How a model is opened where another provider stands in for the one that it ships for: as it was baked."""

SIMPLIFIER = "onnxscript"
"""The locked environment of the simplifier; it holds no runtime, so its results are compared on the host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What the user asked for beside the model and the target.

    `dimensions` fixes dynamic dimensions by name, over those of the profile; `format` is one of the emitter's, or None
    for the profile's; `synthetic_count` and `seed` are for the golden set when there are no samples.
    """

    dimensions: Mapping[str, int] = field(default_factory=dict)
    format: str | None = None
    has_samples: bool = False
    synthetic_count: int = 3
    seed: int = 0


def inspect_step(name: str) -> Step:
    """The step that comes before any plan: facts from the model's structure."""
    return Step(id=INSPECT_ID, stage="inspect", inputs={"model": MODEL}, options={"name": name}, reason="always")


def make_plan(facts: ModelFacts, profile: TargetProfile, request: PlanRequest) -> BuildPlan:
    """Order the steps for one model and one target. Raises `UsageError` for dimensions that the model has not."""
    dimensions = _resolve_dimensions(facts, profile, request)
    golden = _golden_step(dimensions, request)
    shared, current = _shared_steps(profile, dimensions)
    steps = [golden, *shared]
    variants = []
    rules = {variant.name: _choose_rule(facts, profile, variant) for variant in profile.variants}
    for variant in profile.variants:
        _check_capture(variant, facts, dimensions)
        own, plan = _variant_steps(variant, profile, rules[variant.name], current, tuple(step.id for step in shared))
        steps += own
        variants.append(plan)
    return BuildPlan(
        model_name=facts.name,
        target=profile.id,
        steps=tuple(steps),
        golden=golden.id,
        variants=tuple(variants),
        decisions=(*_dimension_decisions(facts, dimensions), *_rule_decisions(rules), gate_decision(facts, profile)),
        emitter=profile.bundle.ecosystem,
        format=request.format or profile.bundle.format,
    )


def step_environments(profile: TargetProfile) -> tuple[str, ...]:
    """Names of the environments that steps of a plan for `profile` may run in."""
    return (HOST, _baker(profile), *((SIMPLIFIER,) if profile.optimization.simplify else ()))


def _baker(profile: TargetProfile) -> str:
    """The environment with the Python runtime of the version that ships."""
    return f"{profile.runtime.baker}=={profile.runtime.version}"


def _resolve_dimensions(facts: ModelFacts, profile: TargetProfile, request: PlanRequest) -> dict[str, int]:
    symbols = facts.signature.symbols
    unknown = sorted(set(request.dimensions) - set(symbols))
    if unknown:
        named = ", ".join(repr(name) for name in unknown)
        known = ", ".join(repr(name) for name in symbols) or "none"
        raise UsageError(
            f"{facts.name} has no dynamic dimension named {named}",
            details=(f"its dynamic dimensions are: {known}",),
            hint="`bundler inspect MODEL` shows every input with its dimensions",
        )
    wanted = {**profile.dimensions, **request.dimensions}
    return {name: wanted[name] for name in symbols if name in wanted}


def _golden_step(dimensions: Mapping[str, int], request: PlanRequest) -> Step:
    inputs = {"model": MODEL}
    options: dict[str, Any] = {"dimensions": dict(dimensions)}
    if request.has_samples:
        inputs["samples"] = SAMPLES
    else:
        options |= {"seed": request.seed, "count": request.synthetic_count}
    reason = "reference outputs of the untouched model"
    return Step(id="record_golden", stage="record_golden", inputs=inputs, options=options, reason=reason)


def _shared_steps(profile: TargetProfile, dimensions: Mapping[str, int]) -> tuple[list[Step], str]:
    """The steps that all variants share, each followed by its comparison, and the source of the model after them."""
    steps: list[Step] = []
    current = MODEL
    if dimensions:
        reason = "dimensions were given: " + ", ".join(f"{name}={size}" for name, size in dimensions.items())
        steps += _checked(_step("fix_dimensions", current, {"dimensions": dict(dimensions)}, reason=reason))
        current = "fix_dimensions"
    if profile.optimization.simplify:
        simplify = _step("simplify", current, {}, reason="the profile asks for it", environment=SIMPLIFIER)
        steps += _checked(simplify)
        current = "simplify"
    return steps, current


def _step(
    stage: str,
    source: str,
    options: Mapping[str, Any],
    *,
    reason: str,
    environment: str = HOST,
    variant: str | None = None,
) -> Step:
    return Step(
        id=f"{variant}/{stage}" if variant else stage,
        stage=stage,
        inputs={"model": source},
        options=options,
        environment=environment,
        variant=variant,
        reason=reason,
    )


def _checked(step: Step, session: Mapping[str, Any] | None = None) -> tuple[Step, Step]:
    """`step`, followed by the comparison of its model with the golden set."""
    comparison = Step(
        id=f"{step.id}/compare",
        stage="compare",
        inputs={"model": step.id, "golden": "record_golden"},
        options=dict(session or {}),
        environment=HOST if step.variant is None else step.environment,
        variant=step.variant,
        reason=f"{step.stage} changes the model",
    )
    return step, comparison


def _variant_steps(
    variant: Variant, profile: TargetProfile, rule: BakeRule, source: str, shared: tuple[str, ...]
) -> tuple[list[Step], VariantPlan]:
    runtime = _baker(profile)
    plan = _variant_plan(variant, rule)
    steps: list[Step] = []
    for stage in rule.stages:
        step = _step(stage.name, source, stage.options, reason=stage.reason, environment=runtime, variant=variant.name)
        steps += _checked(step, _session_options(variant, plan) if stage is rule.stages[-1] else None)
        source = step.id
    steps.append(_step("derive_operators", source, {}, reason="for reports", environment=runtime, variant=variant.name))
    comparisons = tuple(step_id for step_id in (*shared, *(s.id for s in steps)) if step_id.endswith("/compare"))
    return steps, replace(plan, model=source, comparisons=comparisons)


def _variant_plan(variant: Variant, rule: BakeRule) -> VariantPlan:
    """How a session is opened; which model it opens is known when its steps are."""
    known = [(find_provider(entry.name), entry.options) for entry in variant.providers]
    chain = tuple(
        ProviderEntry(
            name=provider.runtime_name,
            options={key: _as_text(value) for key, value in options.items()},
            device=provider.device_memory if variant.keep_on_device else None,
        )
        for provider, options in known
    )
    config = {key: _as_text(value) for key, value in variant.session_config.items()}
    return VariantPlan(
        name=variant.name,
        model="",
        providers=chain,
        session={**rule.session, **variant.session},
        session_config={**rule.session_config, **config},
        comparisons=(),
        disabled_optimizers=rule.disabled_optimizers,
        device_cache=rule.device_cache,
        builds=known[0][0].builds,
    )


def _session_options(variant: Variant, plan: VariantPlan) -> dict[str, Any]:
    """The session as the bundle will open it, for the comparison of the model that ships.

    Where the Python runtime lacks a provider, the one that rehearses for it runs the model as it is written; the
    bundle's own runtime is what the proof runs.
    """
    stand_ins = {find_provider(entry.name).rehearsed_by for entry in variant.providers} - {""}
    if stand_ins:
        names = [find_provider(name).runtime_name for name in sorted(stand_ins)]
        return {"providers": [[name, {}] for name in names], "session": dict(REHEARSAL)}
    return {
        "providers": [[entry.name, dict(entry.options)] for entry in plan.providers],
        "session": dict(plan.session),
        "session_config": dict(plan.session_config),
        "disabled_optimizers": list(plan.disabled_optimizers),
    }


def _as_text(value: str | float | bool) -> str:  # noqa: FBT001 - an option's value may be a boolean
    """Options cross into the runtime as text; booleans as `1` and `0`, which all of its parsers take."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def _choose_rule(facts: ModelFacts, profile: TargetProfile, variant: Variant) -> BakeRule:
    if profile.platform.system == "web":
        return choose_web_baking(facts, profile, variant)
    return choose_baking(facts, profile)


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


def _check_capture(variant: Variant, facts: ModelFacts, dimensions: Mapping[str, int]) -> None:
    """Raise `UsageError` when commands shall be recorded that depend on sizes which are not known."""
    free = [f"dimension {name!r} is dynamic" for name in facts.signature.symbols if name not in dimensions]
    free += [
        f"input {port.name!r} has sizes that the model does not name"
        for port in facts.signature.inputs
        if port.type.shape is None or None in port.type.shape
    ]
    if variant.session.get("enable_graph_capture") and free:
        raise UsageError(
            f"variant {variant.name} records the GPU's commands, which needs fixed sizes",
            details=tuple(free),
            hint="fix what has a name with --dim name=size, or leave variants.session.enable_graph_capture out",
        )


def _dimension_decisions(facts: ModelFacts, dimensions: Mapping[str, int]) -> tuple[Decision, ...]:
    return tuple(
        Decision(
            subject=f"dimension {name}",
            choice=str(dimensions.get(name, "dynamic")),
            reason="given" if name in dimensions else "not given, so the bundle takes any size",
        )
        for name in facts.signature.symbols
    )
