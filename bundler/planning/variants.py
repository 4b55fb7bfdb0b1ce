"""One variant of a plan: precision, optimisation, compilation, and the comparison after each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bundler.model.errors import UsageError
from bundler.model.facts import ModelFacts
from bundler.model.open_sizes import NOBODY, Asker, explain_command
from bundler.model.plan import HOST, METRIC, Decision, Step, VariantPlan
from bundler.model.runtime import Gate
from bundler.planning.compile import (
    companion_steps,
    compile_step,
    find_model_key,
    find_validation,
    placement_steps,
    plan_companion,
    plan_compilation,
    plan_preparation,
)
from bundler.planning.data import GOLDEN, DataPlan
from bundler.planning.devices import choose_device_optimization, computed_loss, is_accelerated, leave_optimizers_out
from bundler.planning.fit import check_numbers, check_operators, check_shapes, find_free_sizes
from bundler.planning.gate import choose_gate
from bundler.planning.precision import precision_step
from bundler.planning.rules import DISABLE_ALL, ENABLE_ALL, OptimizationRule, choose_optimization
from bundler.planning.sessions import Opening, carrier_of, provider_entry, session_to_compare
from bundler.planning.traits import explain_rounding, variant_needs
from bundler.planning.web import choose_web_optimization
from bundler.profiles.asked import as_text
from bundler.profiles.methods import METHODS, NONE, Loss
from bundler.profiles.schema import Metric, TargetProfile, Variant
from bundler.providers.graph_optimizers import CONSTANT_FOLDING
from bundler.providers.registry import find_provider

COMPILED_SESSION = {"session.disable_model_compile": "1"}
"""On the device an unusable context is an error with a reason, instead of a silent compilation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What the plans of all variants share: `facts` with fixed sizes; `source` is the model after the `shared` steps;
    `asker` is for hints on fixing sizes.
    """

    facts: ModelFacts
    profile: TargetProfile
    data: DataPlan
    shared: Sequence[Step]
    source: str
    asker: Asker = NOBODY


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantDraft:
    """One variant's own steps, with the gates of its comparisons by their ids."""

    steps: Sequence[Step]
    plan: VariantPlan
    rule: OptimizationRule
    gates: Mapping[str, Gate]


def plan_variant(draft: Draft, variant: Variant, method: str) -> VariantDraft:
    """The steps of one variant with this precision. Raises `UsageError` for missing data or an incompatible model."""
    _check_capture(variant, draft)
    check_operators(variant, draft.facts)
    check_shapes(variant, draft.facts, draft.asker)
    rule = _choose_rule(draft, variant)
    if method != NONE and METHODS[method].keeps_constants:
        rule = _defer_folding(rule)
    half = computes_half(method) and is_accelerated(variant)
    if half:
        rule = _defer_optimization(rule)
    if draft.facts.doubles and find_provider(variant.providers[0].name).numerics.lacks_doubles:
        rule = _narrow_doubles(rule)
    loss: Loss = METHODS[method].loss if method != NONE else "none"
    check_numbers(variant, draft.facts, loss)
    gate = choose_gate(draft.facts, draft.profile, loss)
    device_gate = choose_gate(draft.facts, draft.profile, computed_loss(draft.profile, variant, loss))
    steps, source = _precision_steps(draft, variant, method, gate)
    optimized = _optimize_variant(draft, variant, rule, source)
    needed = {find_provider(entry.name).numerics.half_feature for entry in variant.providers if half} - {""}
    companions = companion_steps(variant, draft.profile, optimized.model)
    steps = [*steps, *optimized.steps, *companions]
    comparisons = tuple(step.id for step in (*draft.shared, *steps) if step.id.endswith("/compare"))
    gates = {step: gate for step in comparisons if step.startswith(f"{variant.name}/")}
    if optimized.compiled:
        gates |= {step: device_gate for step in gates if step.startswith(f"{optimized.compiled}/")}
    plan = VariantPlan(
        name=variant.name,
        model=optimized.model,
        providers=optimized.opening.providers,
        session=optimized.opening.session,
        session_config=optimized.opening.session_config,
        comparisons=comparisons,
        disabled_optimizers=optimized.opening.disabled_optimizers,
        device_cache=rule.device_cache,
        builds=tuple(build.name for build in find_provider(variant.providers[0].name).presence.builds),
        reproduction=optimized.reproduction,
        features=tuple(sorted(needed)),
        plugins=optimized.opening.plugins,
        compiled=optimized.compiled,
        prepare=plan_preparation(variant),
        least_share=variant.least_share,
        tolerates_shortfall=variant.shortfall == "report",
        gate=device_gate,
        rounding=explain_rounding(draft.profile, variant) if device_gate != gate else "",
        needs=variant_needs(variant, draft.profile),
        companions=tuple(plan_companion(step) for step in companions),
    )
    return VariantDraft(steps=steps, plan=plan, rule=rule, gates=gates)


def _precision_steps(draft: Draft, variant: Variant, method: str, gate: Gate) -> tuple[list[Step], str]:
    """The precision step with its comparison, and the source of the resulting model."""
    if method == NONE:
        return [], draft.source
    row = METHODS[method]
    step = precision_step(
        row,
        draft.profile.precision,
        variant=variant.name,
        source=draft.source,
        calibration=draft.data.calibration,
        gate=gate,
    )
    return [*checked(step, golden=draft.data.evaluation, environment=HOST)], step.id


def _defer_folding(rule: OptimizationRule) -> OptimizationRule:
    """Fold constants at load only, so that low-bit weights stay stored in few bits."""
    stages = tuple(leave_optimizers_out(stage, [CONSTANT_FOLDING]) for stage in rule.stages)
    session = {**rule.session, "graph_optimization_level": ENABLE_ALL}
    return replace(rule, stages=stages, session=session, disabled_optimizers=(), device_cache=False)


def computes_half(method: str) -> bool:
    """Whether this precision computes in FP16, and does not only store weights so."""
    return method != NONE and METHODS[method].loss == "half" and not METHODS[method].keeps_constants


def _defer_optimization(rule: OptimizationRule) -> OptimizationRule:
    """Optimise an FP16 model for a device at load only: the building machine's CPU has no FP16 kernels, so optimising
    there would turn it into FP32.
    """
    stages = tuple(
        replace(stage, options={**stage.options, "level": "none"}) if stage.name == "optimize" else stage
        for stage in rule.stages
    )
    reason = "optimising on a CPU would convert half precision to single; the device's runtime optimises at load time"
    level = Decision(subject="level", choice="none", reason=reason)
    decisions = tuple(level if decision.subject == "level" else decision for decision in rule.decisions)
    session = {**rule.session, "graph_optimization_level": ENABLE_ALL}
    return replace(rule, stages=stages, session=session, decisions=decisions, disabled_optimizers=())


def _narrow_doubles(rule: OptimizationRule) -> OptimizationRule:
    stages = tuple(
        replace(stage, options={**stage.options, "single_precision": True}) if stage.name == "optimize" else stage
        for stage in rule.stages
    )
    return replace(rule, stages=stages)


def optimizer_of(profile: TargetProfile) -> str:
    """The environment with the Python runtime of the version that ships."""
    return f"{profile.runtime.optimizer}=={profile.runtime.version}"


def make_step(
    stage: str,
    source: str,
    options: Mapping[str, Any],
    *,
    reason: str,
    environment: str = HOST,
    variant: str | None = None,
) -> Step:
    """A step that changes the model of `source`."""
    return Step(
        id=f"{variant}/{stage}" if variant else stage,
        stage=stage,
        inputs={"model": source},
        options=options,
        environment=environment,
        variant=variant,
        reason=reason,
    )


def checked(
    step: Step, session: Mapping[str, Any] | None = None, *, golden: str = GOLDEN, environment: str | None = None
) -> tuple[Step, Step]:
    """`step`, followed by the comparison of its model with the outputs recorded by the step `golden`."""
    comparison = Step(
        id=f"{step.id}/compare",
        stage="compare",
        inputs={"model": step.id, "golden": golden},
        options=dict(session or {}),
        environment=environment or (HOST if step.variant is None else step.environment),
        variant=step.variant,
        reason=f"{step.stage} changes the model",
        title="" if golden == GOLDEN else "Compare with the held-out samples",
    )
    return step, comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """How the model of the step `source` is judged: in which environment, with which session."""

    source: str
    environment: str
    session: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedVariant:
    """The result of optimisation and compilation: the step whose model ships, and its session. `compiled` and
    `reproduction` are as in `VariantPlan`.
    """

    steps: Sequence[Step]
    model: str
    opening: Opening
    compiled: str
    reproduction: str


def _optimize_variant(draft: Draft, variant: Variant, rule: OptimizationRule, source: str) -> OptimizedVariant:
    """The steps that optimise, compile and examine the result."""
    runtime = optimizer_of(draft.profile)
    opening = _plan_opening(draft.profile, variant, rule)
    session = session_to_compare(variant, opening)
    evaluation = draft.data.evaluation
    steps: list[Step] = []
    for stage in rule.stages:
        step = make_step(
            stage.name, source, stage.options, reason=stage.reason, environment=runtime, variant=variant.name
        )
        steps += checked(step, session if stage is rule.stages[-1] else None, golden=evaluation)
        source = step.id
    model_key = find_model_key(variant)
    if model_key:
        reason = "the key prevents the device's cache from confusing it with another model"
        step = make_step("stamp_key", source, {"key": model_key}, reason=reason, variant=variant.name)
        steps += checked(step, session, golden=evaluation, environment=runtime)
        source = step.id
    optimized = Running(source=source, environment=runtime, session=session)
    compiled = _compile_variant(draft, variant, opening, optimized)
    steps += compiled.steps
    reproduction = [_reproduction(variant, compiled.running)] if draft.data.reproduces else []
    steps += reproduction
    if draft.profile.accuracy.metric is not None:
        steps.append(_metric_step(draft, draft.profile.accuracy.metric, variant.name, optimized))
    steps.append(
        make_step("derive_operators", source, {}, reason="for reports", environment=runtime, variant=variant.name)
    )
    return OptimizedVariant(
        steps=steps,
        model=compiled.step or source,
        opening=compiled.opening,
        compiled=compiled.step,
        reproduction=reproduction[0].id if reproduction else "",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """The steps that compile for the device, the id of the compiling one (empty: nothing is compiled here), the shipped
    model's session, and how it is judged.
    """

    steps: Sequence[Step]
    step: str = ""
    opening: Opening
    running: Running


def _compile_variant(draft: Draft, variant: Variant, opening: Opening, optimized: Running) -> Compiled:
    """Plan the compilation; if the compiled model cannot run here, the optimised model is judged."""
    compilation = plan_compilation(variant)
    if compilation is None:
        steps = placement_steps(variant, optimized.source, optimized.environment)
        return Compiled(steps=steps, opening=opening, running=optimized)
    step = compile_step(compilation, variant, optimized.source, draft.profile.platform.system)
    config = {**opening.session_config, **COMPILED_SESSION}
    # Folding around the compiled nodes would change their inputs, and the model would not load (measured with QNN).
    session = {**opening.session, "graph_optimization_level": DISABLE_ALL}
    opening = replace(opening, session=session, session_config=config)
    validation = find_validation(compilation, variant, config)
    if validation is None:
        return Compiled(steps=[step], step=step.id, opening=opening, running=optimized)
    running = Running(
        source=step.id if validation.runs_compiled else optimized.source,
        environment=compilation.compiler.environment,
        session=validation.session,
    )
    comparison = Step(
        id=f"{step.id}/compare",
        stage="compare",
        inputs={"model": running.source, "golden": draft.data.evaluation},
        options=dict(running.session),
        environment=running.environment,
        variant=variant.name,
        reason=f"validation with the library of {compilation.known.title}, without the device",
        title="Compare, in emulation of the device"
        if running.source == step.id
        else "Compare, on the device's library",
    )
    return Compiled(steps=[step, comparison], step=step.id, opening=opening, running=running)


def _reproduction(variant: Variant, running: Running) -> Step:
    """The variant's outputs on the golden set, which its runtime must reproduce everywhere."""
    return Step(
        id=f"{variant.name}/reproduce",
        stage="compare",
        inputs={"model": running.source, "golden": GOLDEN},
        options=dict(running.session),
        environment=running.environment,
        variant=variant.name,
        reason="accuracy on the bundle's golden set",
    )


def _metric_step(draft: Draft, metric: Metric, variant: str, optimized: Running) -> Step:
    """The user's own metric; of a Python file the function's name is an option, and the file an input."""
    function = metric.python.rpartition(":")[2] if metric.python else ""
    return Step(
        id=f"{variant}/measure_metric",
        stage="measure_metric",
        inputs={"model": optimized.source, "golden": draft.data.evaluation, **({"metric": METRIC} if function else {})},
        options={**optimized.session, "python": function, "command": list(metric.command)},
        environment=HOST,  # imports of the user's function are installed beside bundler
        variant=variant,
        reason="the profile's accuracy metric",
    )


def _plan_opening(profile: TargetProfile, variant: Variant, rule: OptimizationRule) -> Opening:
    config = {key: as_text(value) for key, value in variant.session_config.items()}
    carriers = [carrier_of(profile, entry.name) for entry in variant.providers]
    return Opening(
        providers=tuple(
            provider_entry(variant, entry, carrier) for entry, carrier in zip(variant.providers, carriers, strict=True)
        ),
        session={**rule.session, **variant.session},
        session_config={**rule.session_config, **config},
        disabled_optimizers=rule.disabled_optimizers,
        plugins={carrier.package: carrier.version for carrier in carriers if carrier.module},
    )


def _choose_rule(draft: Draft, variant: Variant) -> OptimizationRule:
    facts, profile = draft.facts, draft.profile
    if profile.platform.system == "web":
        return choose_web_optimization(facts, profile, variant)
    if is_accelerated(variant):
        return choose_device_optimization(profile, facts, variant)
    return choose_optimization(facts, profile)


def _check_capture(variant: Variant, draft: Draft) -> None:
    """Raise `UsageError` for graph capture with dynamic sizes."""
    free = find_free_sizes(draft.facts)
    if variant.session.get("enable_graph_capture") and free:
        raise UsageError(
            f"variant {variant.name} uses graph capture, which requires fixed sizes",
            details=free,
            hint=f"fix them{explain_command(draft.facts.signature, draft.asker)}, or "
            "remove variants.session.enable_graph_capture",
        )
