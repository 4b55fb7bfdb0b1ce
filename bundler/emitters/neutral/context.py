"""What the README is rendered from: a pure function of the request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bundler.emitters.contract import EmitRequest
from bundler.emitters.device import DeviceContext, describe_device
from bundler.emitters.neutral.deferring import describe_deferral
from bundler.emitters.neutral.packages import Ingredient, list_ingredients, reports_usage
from bundler.emitters.payload import describe_metadata, describe_recorded_preprocessing
from bundler.model.runtime import Compatibility, Compiled, ProviderEntry, RuntimeComponent, RuntimeVariant
from bundler.model.signature import Port, describe_type
from bundler.model.state import StateLink
from bundler.profiles.schema import TargetProfile
from bundler.providers.graph_optimizers import OPTIMIZER_SEPARATOR
from bundler.support.text import shorten, visible

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PortContext:
    """One input or output: `key` is its name as far as a person can read it."""

    key: str
    type: str
    optional: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One name and its value, both as text."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderContext:
    """One provider of a chain. `library` is empty where the runtime itself has it."""

    name: str
    library: str
    select: tuple[Setting, ...]
    options: tuple[Setting, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantContext:
    """One variant. `facts` are sentences on where it runs; `deferred` names what is generated on the device (empty for
    nothing), with its kind, the reason and provider options. `disabled_optimizers` is the value of the runtime's
    configuration entry.
    """

    name: str
    model: str
    size: str
    files: tuple[str, ...]
    providers: tuple[ProviderContext, ...]
    session: tuple[Setting, ...]
    session_config: tuple[Setting, ...]
    disabled_optimizers: str
    facts: tuple[str, ...]
    deferred: str
    deferred_kind: str
    deferred_why: str
    deferred_options: tuple[Setting, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentContext:
    """One model of the bundle; `golden` is the folder of its golden set, `state` a sentence for each link."""

    name: str
    model: str
    golden: str
    inputs: tuple[PortContext, ...]
    outputs: tuple[PortContext, ...]
    variants: tuple[VariantContext, ...]
    preprocessing: tuple[str, ...]
    metadata: tuple[str, ...]
    state: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """All that the template sees. Text from the model is made printable here; the template escapes it. `together` names
    the components that run on the variant of one name.
    """

    name: str
    title: str
    summary: str
    format: str
    components: tuple[ComponentContext, ...]
    several: bool
    together: tuple[str, ...]
    ingredients: tuple[Ingredient, ...]
    unsaid: tuple[str, ...]
    strict: bool
    silenced: bool
    plugged: bool
    optimizers: bool
    deferred: bool
    compiled: bool
    device: DeviceContext


def make_context(request: EmitRequest, unsaid: tuple[str, ...] = ()) -> Context:
    """The context of one bundle."""
    config, profile = request.config, request.profile
    name = visible(shorten(config.name))
    components = tuple(_make_component(component, profile) for component in config.components)
    variants = [variant for component in components for variant in component.variants]
    what = f"The ONNX model {name}" if config.sole else f"{len(components)} ONNX models"
    return Context(
        name=name,
        title=f"{name} for {config.target}",
        summary=f"{what}, built for {visible(profile.title)}.",
        format=request.format,
        components=components,
        several=config.sole is None,
        together=config.together,
        ingredients=list_ingredients(profile),
        unsaid=unsaid,
        strict=config.fallback == "strict",
        silenced=reports_usage(profile) and not config.telemetry,
        plugged=any(provider.library for variant in variants for provider in variant.providers),
        optimizers=any(variant.disabled_optimizers for variant in variants),
        deferred=any(variant.deferred for variant in variants),
        compiled=any(variant.requires.compiled for _, variant in config.pairs),
        device=describe_device(request),
    )


def _make_component(component: RuntimeComponent, profile: TargetProfile) -> ComponentContext:
    return ComponentContext(
        name=component.name,
        model=visible(shorten(component.model)),
        golden=component.golden,
        inputs=tuple(_make_port(port) for port in component.signature.inputs),
        outputs=tuple(_make_port(port) for port in component.signature.outputs),
        variants=tuple(_make_variant(variant, profile) for variant in component.variants),
        preprocessing=describe_recorded_preprocessing(component.preprocessing),
        metadata=describe_metadata(component),
        state=tuple(map(_describe_link, component.state)),
    )


def _describe_link(link: StateLink) -> str:
    initial = {"zeros": "zeros", "constant": f"{link.value:g} everywhere", "file": f"the tensor in {link.file}"}
    grows = "" if link.grows is None else f"; it grows along axis {link.grows}"
    return f"{shorten(link.output)} is {shorten(link.input)} of the next call, at first {initial[link.initial]}{grows}"


def _make_port(port: Port) -> PortContext:
    return PortContext(key=shorten(port.name), type=shorten(describe_type(port.type)), optional=port.optional)


def _make_variant(variant: RuntimeVariant, profile: TargetProfile) -> VariantContext:
    prepare = variant.prepare
    return VariantContext(
        name=variant.name,
        model=variant.model,
        size=f"{sum(record.size for record in variant.files) / MEGABYTE:.2f} MB",
        files=tuple(record.path for record in variant.files if record.path != variant.model),
        providers=tuple(_make_provider(entry) for entry in variant.providers),
        session=_settings(variant.session),
        session_config=_settings(variant.session_config),
        disabled_optimizers=OPTIMIZER_SEPARATOR.join(variant.disabled_optimizers),
        facts=tuple(_describe_requirements(variant)),
        deferred=prepare.thing if prepare else "",
        deferred_kind=prepare.kind if prepare else "",
        deferred_why=describe_deferral(profile, variant.name) if prepare else "",
        deferred_options=_settings(prepare.options) if prepare else (),
    )


def _make_provider(entry: ProviderEntry) -> ProviderContext:
    return ProviderContext(
        name=entry.name,
        library=entry.library or "",
        select=_settings(entry.select),
        options=_settings(entry.options),
    )


def _settings(values: Mapping[str, Any]) -> tuple[Setting, ...]:
    """In the order of their names. Flags are written as JSON has them."""
    return tuple(Setting(name=name, value=_word(values[name])) for name in sorted(values))


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _describe_requirements(variant: RuntimeVariant) -> list[str]:
    """The requirements on the device, a sentence each."""
    requires = variant.requires
    lines = [f"It runs on {_where(requires)}, with version {requires.runtime} of the runtime."]
    if requires.plugins:
        pins = ", ".join(f"{name} {version}" for name, version in sorted(requires.plugins.items()))
        lines.append(f"Its provider comes with {pins}.")
    if requires.features:
        lines.append(f"The device must support {', '.join(requires.features)}.")
    if requires.compiled:
        lines += _describe_compiled(requires.compiled)
    if variant.least_share:
        lines.append(f"Its first provider must be assigned {_describe_share(variant.least_share)}.")
    return lines


def _describe_share(share: float) -> str:
    """A model that was compiled ahead of time has only nodes of compiled parts, so one is enough."""
    return f"at least {share:.0%} of the nodes" if share >= _LEAST_TOLD else "at least one node"


_LEAST_TOLD = 0.005
"""Smaller shares would be shown as 0%."""


def _where(requires: Compatibility) -> str:
    systems = " or ".join(requires.systems) or "any system"
    machines = f" on {' or '.join(requires.machines)}" if requires.machines else ""
    return f"{systems}{machines}"


def _describe_compiled(compiled: Compiled) -> list[str]:
    numbers = ", ".join(compiled.devices)
    devices = f"device {numbers} in its compiler's numbering" if numbers else "the device that it names"
    lines = [
        f"It was compiled ahead of time for {compiled.provider}, {devices}: do not open it on another device.",
        f"Version of the compiler: {compiled.sdk}.",
    ]
    if compiled.partners:
        lines.append(
            f"The compiled file holds the graphs of {' and '.join(compiled.partners)}: create their sessions one after "
            "the other in one process, with the configuration below. ONNX Runtime's documentation says that the second "
            "then takes what the first has loaded; bundler has not tried it."
        )
    if compiled.statement:
        lines.append(f"Its compatibility string for the runtime's own check: {compiled.statement}.")
    return lines
