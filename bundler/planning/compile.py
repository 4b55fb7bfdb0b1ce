"""What is compiled for a device before shipping, what is left for it, and how what was compiled is run here. Pure, as
all planning; what differs by provider comes from its knowledge.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from bundler.model.plan import Decision, Step
from bundler.model.runtime import Preparation
from bundler.planning.rules import DISABLE_ALL, ENABLE_ALL
from bundler.planning.sessions import plugin_module, split_options
from bundler.profiles.asked import is_compiled_here
from bundler.profiles.schema import OptionValue, TargetProfile, Variant
from bundler.providers.knowledge import Compiler, ProviderKnowledge
from bundler.providers.registry import find_provider
from bundler.providers.rules import HERE, split_items
from bundler.providers.shape_ranges import parse_shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """How a variant is compiled before shipping. `options` are the provider's at compile time, as text."""

    known: ProviderKnowledge
    compiler: Compiler
    options: Mapping[str, str]
    settings: Mapping[str, OptionValue] = field(default_factory=dict)


def plan_compilation(variant: Variant) -> Compilation | None:
    """How the variant is compiled here; None where it is not."""
    first = variant.providers[0]
    known = find_provider(first.name)
    if known.compiler is None or not is_compiled_here(variant):
        return None
    options, _ = split_options(known, first.options)
    settings = {key: value for key, value in variant.compile.items() if key != HERE.key}
    return Compilation(known=known, compiler=known.compiler, options=options, settings=settings)


def plan_preparation(variant: Variant) -> Preparation | None:
    """What is made on the device; None where nothing is."""
    known = find_provider(variant.providers[0].name)
    deferral = known.deferral
    if deferral is None or plan_compilation(variant) is not None:
        return None
    folder = {deferral.folder_option: deferral.folder_value} if deferral.folder_option else {}
    return Preparation(kind=deferral.kind, thing=deferral.thing, options={**deferral.options, **folder})


def find_model_key(variant: Variant) -> str:
    """The metadata entry by which the device's cache knows the model; empty where it needs none."""
    deferral = find_provider(variant.providers[0].name).deferral
    return deferral.model_key if deferral is not None and plan_preparation(variant) is not None else ""


def compile_decisions(variant: Variant) -> tuple[Decision, ...]:
    """What is compiled here and what on the device, for people; nothing where nothing is."""
    compilation, preparation = plan_compilation(variant), plan_preparation(variant)
    if compilation is not None:
        reason = f"{compilation.known.title} needs no device to compile for one"
        return (Decision(subject=f"compiling for {compilation.known.title}", choice="here", reason=reason),)
    if preparation is not None:
        known = find_provider(variant.providers[0].name)
        reason = f"the {preparation.thing} is made there, at install or first start"
        if known.compiler is not None and known.compiler.ranges and known.compiler.by_default:
            reason += "; sizes that are fixed (--dim, --shape) or have ranges let it be made here"
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
        reason=f"{known.title} compiles before shipping, so that the first start on the device does not",
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
    if compiler.through_plugin:
        _, select = split_options(known, variant.providers[0].options)
        own |= {"library": plugin_module(known), "options": dict(compilation.options), "select": select}
    return own


def _read_ranges(compiler: Compiler, options: Mapping[str, str]) -> dict[str, list[list[int]]]:
    """Least, best and greatest shape of each input that has them."""
    given = [parse_shapes(options[key]) for key in compiler.ranges if options.get(key)]
    names = given[0] if len(given) == len(compiler.ranges) else {}
    return {name: [list(shapes[name][0]) for shapes in given] for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The session in which the provider's library runs, without the device, what was compiled, or else the model that
    it was compiled from.
    """

    session: Mapping[str, Any]
    runs_compiled: bool


def find_validation(compilation: Compilation, variant: Variant, config: Mapping[str, str]) -> Validation | None:
    """How it is run here; None where nothing here can. `config` is what a session on what was compiled is told."""
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


def placement_steps(variant: Variant, source: str) -> list[Step]:
    """The step that estimates which nodes the provider will take, where somebody knows."""
    known = find_provider(variant.providers[0].name)
    if known.graph.checker is None:
        return []
    checker = known.graph.checker(split_options(known, variant.providers[0].options)[0])
    step = Step(
        id=f"{variant.name}/check_placement",
        stage="check_placement",
        inputs={"model": source},
        options={**asdict(checker), "provider": known.runtime_name},
        variant=variant.name,
        reason=f"which nodes {known.title} will take, as far as can be said without the device",
    )
    return [step]


def device_environments(profile: TargetProfile) -> tuple[str, ...]:
    """The environments that compile for the profile's variants."""
    found = [plan_compilation(variant) for variant in profile.variants if not variant.custom_build]
    return tuple(dict.fromkeys(item.compiler.environment for item in found if item is not None))
