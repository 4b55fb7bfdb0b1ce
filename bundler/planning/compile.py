"""Compilation ahead of time or on the device, and validation of compiled models on the building machine. Pure, like
all planning; differences between providers come from `bundler.providers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from bundler.model.errors import DefectError
from bundler.model.plan import Decision, PlannedArtifact, Step
from bundler.model.runtime import Preparation
from bundler.planning.rules import DISABLE_ALL, ENABLE_ALL
from bundler.planning.sessions import plugin_module, split_options
from bundler.profiles.asked import is_compiled_here
from bundler.profiles.schema import OptionValue, TargetProfile, Variant
from bundler.providers.knowledge import Compiler, ProviderKnowledge
from bundler.providers.registry import find_provider
from bundler.providers.rules import HERE, split_items
from bundler.providers.shape_ranges import parse_shapes
from bundler.stages.registry import find_stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """How a variant is compiled ahead of time. `options` are the provider's compile-time options, as text."""

    known: ProviderKnowledge
    compiler: Compiler
    options: Mapping[str, str]
    settings: Mapping[str, OptionValue] = field(default_factory=dict)


def plan_compilation(variant: Variant) -> Compilation | None:
    """How the variant is compiled ahead of time; None if it is not."""
    first = variant.providers[0]
    known = find_provider(first.name)
    if known.compiler is None or not is_compiled_here(variant):
        return None
    options, _ = split_options(known, first.options)
    settings = {key: value for key, value in variant.compile.items() if key != HERE.key}
    return Compilation(known=known, compiler=known.compiler, options=options, settings=settings)


def plan_preparation(variant: Variant) -> Preparation | None:
    """What is generated on the device; None if nothing is."""
    known = find_provider(variant.providers[0].name)
    deferral = known.deferral
    if deferral is None or plan_compilation(variant) is not None:
        return None
    folder = {deferral.folder_option: deferral.folder_value} if deferral.folder_option else {}
    return Preparation(kind=deferral.kind, thing=deferral.thing, options={**deferral.options, **folder})


def find_model_key(variant: Variant) -> str:
    """The metadata entry that identifies the model in the device's cache; empty if none is required."""
    deferral = find_provider(variant.providers[0].name).deferral
    return deferral.model_key if deferral is not None and plan_preparation(variant) is not None else ""


def compile_decisions(variant: Variant) -> tuple[Decision, ...]:
    """Decisions on compiling here or on the device; empty if nothing is compiled."""
    compilation, preparation = plan_compilation(variant), plan_preparation(variant)
    if compilation is not None:
        reason = f"{compilation.known.title} compiles without the device"
        return (Decision(subject=f"compiling for {compilation.known.title}", choice="here", reason=reason),)
    if preparation is not None:
        known = find_provider(variant.providers[0].name)
        reason = f"the {preparation.thing} is generated there, at installation or first start"
        if known.compiler is not None and known.compiler.ranges and known.compiler.by_default:
            reason += "; with fixed sizes (--dim, --shape) or ranges it is compiled here"
        return (Decision(subject=f"compiling for {known.title}", choice="on the device", reason=reason),)
    return ()


def compile_step(compilation: Compilation, variant: Variant, source: str, system: str) -> Step:
    """The step that compiles the model of `source` for a device with this operating system."""
    known, compiler = compilation.known, compilation.compiler
    return Step(
        id=f"{variant.name}/{compiler.stage}",
        stage=compiler.stage,
        inputs={"model": source},
        options=_compile_options(compilation, variant, system),
        environment=compiler.environment,
        variant=variant.name,
        reason=f"{known.title} is compiled for ahead of time, so that the first start on the device is fast",
    )


def _compile_options(compilation: Compilation, variant: Variant, system: str) -> dict[str, Any]:
    known, compiler = compilation.known, compilation.compiler
    plain = {key: value for key, value in compilation.settings.items() if key not in compiler.lists}
    listed = {
        option: split_items(str(compilation.settings[key]))
        for key, option in compiler.lists.items()
        if key in compilation.settings
    }
    own: dict[str, Any] = {"provider": known.runtime_name, **plain, **listed}
    if compiler.for_one_system:
        own["platform"] = system
    if compiler.ranges:
        own["profiles"] = _read_ranges(compiler, compilation.options)
    if compiler.wide_casts:
        own["wide_casts"] = True
    if compiler.through_plugin:
        _, select = split_options(known, variant.providers[0].options)
        own |= {"library": plugin_module(known), "options": dict(compilation.options), "select": select}
    return own


def _read_ranges(compiler: Compiler, options: Mapping[str, str]) -> dict[str, list[list[int]]]:
    """Minimum, optimum and maximum shape of each input with a range."""
    given = [parse_shapes(options[key]) for key in compiler.ranges if options.get(key)]
    names = given[0] if len(given) == len(compiler.ranges) else {}
    return {name: [list(shapes[name][0]) for shapes in given] for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The session that validates a compilation without the device, using the provider's library: on the compiled
    model (`runs_compiled`) or on its source model.
    """

    session: Mapping[str, Any]
    runs_compiled: bool


def find_validation(compilation: Compilation, variant: Variant, config: Mapping[str, str]) -> Validation | None:
    """How a compilation is validated here; None if it cannot be. `config` is its session config."""
    known, compiler = compilation.known, compilation.compiler
    if not compiler.executes:
        return None
    instead = None if compiler.validation_options is None else compiler.validation_options(compilation.options)
    _, select = split_options(known, variant.providers[0].options)
    session = {
        "providers": [[known.runtime_name, dict(compilation.options if instead is None else instead)]],
        "plugins": {known.runtime_name: {"library": plugin_module(known), "select": select}},
        "session": {"graph_optimization_level": DISABLE_ALL if instead is None else ENABLE_ALL},
        "session_config": dict(config) if instead is None else {},
        "check_providers": True,
    }
    return Validation(session=session, runs_compiled=instead is None)


def placement_steps(variant: Variant, source: str, environment: str) -> list[Step]:
    """The step that estimates which nodes are assigned to the provider, for providers with a checker. `environment` has
    the version of the runtime that ships: its tables of operators differ from those of others.
    """
    known = find_provider(variant.providers[0].name)
    if known.graph.checker is None:
        return []
    checker = known.graph.checker(split_options(known, variant.providers[0].options)[0])
    step = Step(
        id=f"{variant.name}/check_placement",
        stage="check_placement",
        inputs={"model": source},
        options={**asdict(checker), "provider": known.runtime_name},
        environment=environment,
        variant=variant.name,
        reason=f"estimate without the device: nodes assigned to {known.title}",
    )
    return [step]


def companion_steps(variant: Variant, profile: TargetProfile, source: str) -> list[Step]:
    """The steps that make what the variant ships beside its model, the output of the step `source`."""
    known = find_provider(variant.providers[0].name)
    platform = profile.platform
    return [
        Step(
            id=f"{variant.name}/{companion.stage}",
            stage=companion.stage,
            inputs={"model": source},
            options={"system": platform.system, "architecture": platform.architecture},
            environment=companion.environment,
            toolchain=companion.toolchain,
            variant=variant.name,
            reason=f"shipped next to the model for {known.title}",
        )
        for companion in known.companions
    ]


def plan_companion(step: Step) -> PlannedArtifact:
    """What the bundle ships of the step. Raises `DefectError` for a stage that may make nothing of its own."""
    spec = find_stage(step.stage)
    if spec.produces is None or spec.changes_model or spec.optional:
        raise DefectError(f"stage {spec.name} must make an artifact next to the model, which its spec does not promise")
    return PlannedArtifact(kind=spec.produces, step=step.id, variant=step.variant)


def device_environments(profile: TargetProfile) -> tuple[str, ...]:
    """The environments that compile the profile's variants, or make something for them beside the model."""
    built = [variant for variant in profile.variants if not variant.custom_build]
    compilations = [found for variant in built if (found := plan_compilation(variant)) is not None]
    companions = [item for variant in built for item in find_provider(variant.providers[0].name).companions]
    return tuple(
        dict.fromkeys(
            (*(item.compiler.environment for item in compilations), *(item.environment for item in companions))
        )
    )
