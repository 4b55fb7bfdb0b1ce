"""What runs on an accelerator: which variants a runtime can have, what is baked for them, what is compiled before
shipping, and what is left for the device. Pure, as all planning; what differs by provider comes from its knowledge.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bundler.model.errors import ProfileError, UsageError
from bundler.model.facts import ModelFacts
from bundler.model.plan import Decision, Step
from bundler.model.runtime import Preparation
from bundler.planning_precision import CALIBRATION_HINT
from bundler.planning_rules import (
    DISABLE_ALL,
    ENABLE_ALL,
    BakeRule,
    Choice,
    bake_stages,
    choose_level,
    choose_simplifier,
)
from bundler.profiles.methods import NONE, Loss
from bundler.profiles.schema import OptionValue, TargetProfile, Variant
from bundler.providers.availability import find_carrier
from bundler.providers.knowledge import Compiler, ProviderKnowledge
from bundler.providers.registry import find_provider
from bundler.providers.shape_ranges import parse_shapes

EXTERNAL_WEIGHTS = 1_000_000_000
"""From this many bytes of weights on, they go into a file of their own: one protobuf file holds two gigabytes, and no
provider that compiles a model maps it."""

HERE = "here"
"""The key of every compiler's options that says whether the model is compiled on the building machine."""

_ORDER: tuple[Loss, ...] = ("none", "half", "bfloat16", "eight-bit", "four-bit")


def leave_out(profile: TargetProfile) -> tuple[TargetProfile, tuple[Decision, ...]]:
    """`profile` without the variants that only a runtime of one's own build can run, and a decision for each.

    Raises `ProfileError` when none is left.
    """
    if profile.runtime.custom_build:
        return profile, ()
    kept = tuple(variant for variant in profile.variants if not variant.custom_build)
    gone = [variant for variant in profile.variants if variant.custom_build]
    if not kept:
        raise ProfileError(
            f"{profile.id} runs only on a runtime of your own build",
            details=tuple(f"{variant.name}: {_tell_gone(variant)}" for variant in gone),
            hint="with such a runtime at hand, build with --set runtime.custom_build=true",
        )
    decisions = tuple(
        Decision(subject=f"variant {variant.name}", choice="left out", reason=_tell_gone(variant)) for variant in gone
    )
    return (profile.model_copy(update={"variants": kept}) if gone else profile), decisions


def _tell_gone(variant: Variant) -> str:
    known = find_provider(variant.providers[0].name)
    told = [text.rstrip(".") for text in (known.gone, f"instead: {known.instead}" if known.instead else "") if text]
    return "; ".join(told) or f"no published runtime has {known.title}"


def apply_recipe(profile: TargetProfile, facts: ModelFacts, *, calibrated: bool) -> TargetProfile:
    """`profile` with the method that it names for calibration data, where there are some and nothing else was asked.

    A model that came quantised keeps its own numbers.
    """
    if not calibrated or facts.quantized or "method" in profile.precision.model_fields_set:
        return profile
    if profile.optimization.preset != NONE:
        return profile
    variants = tuple(
        variant.model_copy(update={"precision": variant.calibrated or profile.precision.calibrated})
        if variant.precision is None
        else variant
        for variant in profile.variants
    )
    return profile.model_copy(update={"variants": variants})


def is_accelerated(variant: Variant) -> bool:
    """Whether its first provider is another than the CPU's kernels, and so chooses its own fusions."""
    return not find_provider(variant.providers[0].name).takes_fusions


def check_shapes(variant: Variant, facts: ModelFacts, dimensions: Mapping[str, int]) -> None:
    """Raise `UsageError` when the provider takes fixed sizes only, and the model has others."""
    known = find_provider(variant.providers[0].name)
    if not known.static_shapes:
        return
    details = find_free_sizes(facts, dimensions)
    if not details:
        return
    free = [name for name in facts.signature.symbols if name not in dimensions]
    example = " ".join(f"--dim {shlex.quote(f'{name}=1')}" for name in free)
    raise UsageError(
        f"variant {variant.name} runs on {known.title}, which takes fixed sizes only",
        details=details,
        hint=f"fix them, for example {example}" if free else "export the model with fixed or named sizes",
    )


def check_numbers(variant: Variant, facts: ModelFacts, loss: Loss) -> None:
    """Raise `UsageError` when the device takes quantised models alone, and this one is not and will not be."""
    known = find_provider(variant.providers[0].name)
    if known.wants_integers is None or facts.quantized or loss not in ("none", "half", "bfloat16"):
        return
    reason = known.wants_integers(split_options(known, variant.providers[0].options)[0])
    if reason:
        raise UsageError(
            f"variant {variant.name} takes quantised models only ({reason})",
            details=(f"{facts.name} is in floating point",),
            hint=CALIBRATION_HINT,
        )


def find_free_sizes(facts: ModelFacts, dimensions: Mapping[str, int]) -> tuple[str, ...]:
    """A sentence for each size of an input that is not fixed."""
    free = [f"dimension {name!r} is dynamic" for name in facts.signature.symbols if name not in dimensions]
    unnamed = [
        f"input {port.name!r} has sizes that the model does not name"
        for port in facts.signature.inputs
        if port.type.shape is None or None in port.type.shape
    ]
    return (*free, *unnamed)


def choose_device_baking(profile: TargetProfile, facts: ModelFacts, variant: Variant) -> BakeRule:
    """What is baked for an accelerator: fusions of the CPU would make operators that it lacks, and what compiles the
    model wants the graph as it was written.
    """
    level = _choose_device_level(facts, profile)
    model_format = Choice(
        choice="onnx",
        decision=Decision(subject="format", choice="onnx", reason="providers of devices read nothing else"),
    )
    opening = Decision(
        subject="optimisation on the device",
        choice="all",
        reason="the device chooses its own layout and fusions",
    )
    decisions = [choice.decision for choice in (choose_simplifier(profile), level, model_format) if choice.decision]
    return BakeRule(
        stages=bake_stages(profile, level, model_format, EXTERNAL_WEIGHTS),
        session={"graph_optimization_level": ENABLE_ALL},
        decisions=(*decisions, opening, *_compile_decisions(variant)),
    )


def _choose_device_level(facts: ModelFacts, profile: TargetProfile) -> Choice:
    """Folding what is constant, above all arithmetic on shapes that were fixed, makes graphs that providers take whole:
    of a sentence encoder with fixed sizes an NPU took 140 of 368 nodes as it was exported, and all that were left of it
    after this level.
    """
    level = choose_level(facts, profile)
    if level.choice != "extended" or profile.optimization.level != "auto":
        return level
    reason = "what every provider runs; fusions of the CPU would take nodes from the device"
    return Choice(choice="basic", decision=Decision(subject="level", choice="basic", reason=reason))


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
    if known.compiler is None or not _is_here(known.compiler, variant):
        return None
    options, _ = split_options(known, first.options)
    settings = {key: value for key, value in variant.compile.items() if key != HERE}
    return Compilation(known=known, compiler=known.compiler, options=options, settings=settings)


def _is_here(compiler: Compiler, variant: Variant) -> bool:
    asked = variant.compile.get(HERE)
    return compiler.by_default if asked is None else str(asked).lower() in ("1", "true")


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


def _compile_decisions(variant: Variant) -> tuple[Decision, ...]:
    compilation, preparation = plan_compilation(variant), plan_preparation(variant)
    if compilation is not None:
        reason = f"{compilation.known.title} needs no device to compile for one"
        return (Decision(subject=f"compiling for {compilation.known.title}", choice="here", reason=reason),)
    if preparation is not None:
        known = find_provider(variant.providers[0].name)
        reason = f"the {preparation.thing} is made there by `prewarm`, or at the first start that waits for it"
        if known.compiler is not None and known.compiler.ranges and known.compiler.by_default:
            reason += "; sizes that are fixed (--dim) or have ranges let it be made here"
        return (Decision(subject=f"compiling for {known.title}", choice="on the device", reason=reason),)
    return ()


def split_options(
    known: ProviderKnowledge, options: Mapping[str, OptionValue]
) -> tuple[dict[str, str], dict[str, str]]:
    """A provider's options as text, and those of them that choose a plugin's device, by the plugin's own keys."""
    texts = {key: as_text(value) for key, value in options.items()}
    select = {known.select_by[key]: value for key, value in texts.items() if key in known.select_by}
    return {key: value for key, value in texts.items() if key not in known.select_by}, {**known.select, **select}


def as_text(value: OptionValue) -> str:
    """Options cross into the runtime as text; booleans as `1` and `0`, which all of its parsers take."""
    return str(int(value)) if isinstance(value, bool) else str(value)


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
        option: [item.strip() for item in str(compilation.settings[key]).split(",") if item.strip()]
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


def settle_compile(variant: Variant, facts: ModelFacts, dimensions: Mapping[str, int]) -> Variant:
    """The variant as it can be compiled: one whose compiler wants ranges for dynamic sizes, and has none, is left for
    the device.
    """
    compilation = plan_compilation(variant)
    if compilation is None or not compilation.compiler.ranges:
        return variant
    given = all(compilation.options.get(key) for key in compilation.compiler.ranges)
    if given or not find_free_sizes(facts, dimensions):
        return variant
    return variant.model_copy(update={"compile": {**variant.compile, HERE: False}})


def plugin_module(known: ProviderKnowledge) -> str:
    """The Python module of the plugin that carries a provider; empty where none does."""
    return next((row.module for row in known.availability if row.is_plugin), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """Which distribution of the profile has a provider: the plugin's module and version, both empty for the runtime."""

    module: str = ""
    package: str = ""
    version: str = ""


def carrier_of(profile: TargetProfile, name: str) -> Carrier:
    """Where the provider comes from in the runtime that the profile ships."""
    found = find_carrier(
        find_provider(name),
        profile.runtime.package,
        profile.runtime.version,
        profile.runtime.plugins,
        profile.platform.system,
        profile.platform.architecture,
    )
    if found is None or not found.is_plugin:
        return Carrier()
    return Carrier(module=found.module, package=found.package, version=profile.runtime.plugins[found.package])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """The session in which the provider's library runs, without the device, what was compiled, or else the model that
    it was compiled from.
    """

    session: Mapping[str, Any]
    runs_compiled: bool


def find_rehearsal(compilation: Compilation, variant: Variant, config: Mapping[str, str]) -> Rehearsal | None:
    """How it is run here; None where nothing here can. `config` is what a session on what was compiled is told."""
    known, compiler = compilation.known, compilation.compiler
    if not compiler.executes:
        return None
    instead = None if compiler.rehearsed_with is None else compiler.rehearsed_with(compilation.options)
    _, select = split_options(known, variant.providers[0].options)
    session = {
        "providers": [[known.runtime_name, dict(compilation.options if instead is None else instead)]],
        "plugins": {known.runtime_name: {"library": plugin_module(known), "select": select}},
        "session": {"graph_optimization_level": DISABLE_ALL if instead is None else ENABLE_ALL},
        "session_config": dict(config) if instead is None else {},
        "check_providers": True,
    }
    return Rehearsal(session=session, runs_compiled=instead is None)


def placement_steps(variant: Variant, source: str) -> list[Step]:
    """The step that estimates which nodes the provider will take, where somebody knows."""
    known = find_provider(variant.providers[0].name)
    checker = known.checker(split_options(known, variant.providers[0].options)[0]) if known.checker else ""
    if not checker:
        return []
    step = Step(
        id=f"{variant.name}/check_placement",
        stage="check_placement",
        inputs={"model": source},
        options={"checker": checker, "provider": known.runtime_name},
        variant=variant.name,
        reason=f"which nodes {known.title} will take, as far as can be said without the device",
    )
    return [step]


def computed_loss(variant: Variant, loss: Loss) -> Loss:
    """How coarse the answers are on the device: of the method, or of the device where that is coarser."""
    known = find_provider(variant.providers[0].name)
    options, _ = split_options(known, variant.providers[0].options)
    device: Loss = known.rounds(options) if known.rounds is not None else "none"
    return max(loss, device, key=_ORDER.index)


def device_environments(profile: TargetProfile) -> tuple[str, ...]:
    """The environments that compile for the profile's variants."""
    found = [plan_compilation(variant) for variant in profile.variants if not variant.custom_build]
    return tuple(dict.fromkeys(item.compiler.environment for item in found if item is not None))
