"""Rules for values that are valid alone and incompatible together. Each is a generator of problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from bundler.profiles.chain import Key
from bundler.profiles.device_compatibility import (
    check_carriers,
    check_compile,
    check_knowledge,
    check_libraries,
    check_recipes,
)
from bundler.profiles.machines import ARCHITECTURES, CORES
from bundler.profiles.methods import AUTO, METHODS, NONE
from bundler.profiles.options import check_variant, is_on, session_rules
from bundler.profiles.problems import Problem, describe_unknown_method, suggest
from bundler.profiles.schema import Precision, TargetProfile, Variant
from bundler.profiles.sections import EcosystemSection
from bundler.providers.registry import find_provider, provider_names


def find_incompatible_values(profile: TargetProfile) -> list[Problem]:
    """All problems of a profile whose single values are valid."""
    return [problem for rule in _RULES for problem in rule(profile)]


def _check_options(profile: TargetProfile) -> Iterator[Problem]:
    rules = session_rules(profile.platform.system, profile.bundle.ecosystem)
    for position, variant in enumerate(profile.variants):
        yield from check_variant(variant, ("variants", position), rules)


def _check_names(profile: TargetProfile) -> Iterator[Problem]:
    counts = Counter(variant.name for variant in profile.variants)
    for position, variant in enumerate(profile.variants):
        if counts[variant.name] > 1:
            yield Problem(
                key=("variants", position, "name"), text=f'"{variant.name}" names {counts[variant.name]} variants'
            )
        chain = Counter(provider.name for provider in variant.providers)
        for name in (name for name, count in chain.items() if count > 1):
            yield Problem(key=("variants", position, "providers"), text=f"{name!r} is in the chain more than once")


def _check_architecture(profile: TargetProfile) -> Iterator[Problem]:
    system, architecture = profile.platform.system, profile.platform.architecture
    if architecture not in ARCHITECTURES[system]:
        fitting = ", ".join(ARCHITECTURES[system])
        yield Problem(
            key=("platform", "architecture"), text=f"{system} does not run on {architecture} (it runs on {fitting})"
        )


def _check_core(profile: TargetProfile) -> Iterator[Problem]:
    core, architecture = profile.platform.cpu, profile.platform.architecture
    if core is None or core in CORES.get(architecture, ()):
        return
    owners = [other for other, names in CORES.items() if core in names]
    if owners:
        text = f'"{core}" is a core of {owners[0]}, but the architecture is {architecture}'
    else:
        text = f'QEMU has no {architecture} core "{core}"{suggest(core, CORES.get(architecture, ()))}'
    yield Problem(key=("platform", "cpu"), text=text)


def _check_sections(profile: TargetProfile) -> Iterator[Problem]:
    """What each ecosystem requires for its bundles."""
    for _, section in profile:
        if isinstance(section, EcosystemSection):
            for key, text in section.find_problems(profile):
                yield Problem(key=key, text=text)


def _check_providers(profile: TargetProfile) -> Iterator[Problem]:
    """The runtime of browsers has providers of its own, and no others."""
    for position, variant in enumerate(profile.variants):
        for place, entry in enumerate(variant.providers):
            if entry.name not in provider_names():
                continue  # reported elsewhere
            at = ("variants", position, "providers", place, "name")
            in_browsers = bool(find_provider(entry.name).presence.builds)
            if in_browsers != (profile.platform.system == "web"):
                where = "runs in browsers only" if in_browsers else "is not in the runtime of browsers"
                yield Problem(key=at, text=f'"{entry.name}" {where}, and platform.system is {profile.platform.system}')


def _check_device_memory(variant: Variant, at: Key) -> Iterator[Problem]:
    """What shall stay on the device needs a device that is not the CPU."""
    first = variant.providers[0].name
    on_device = first in provider_names() and find_provider(first).device_memory is not None
    if variant.keep_on_device and not on_device:
        yield Problem(
            key=(*at, "keep_on_device"), text=f'has no effect: "{first}" keeps its tensors in the CPU\'s memory'
        )
    if variant.session.get("enable_graph_capture") in (True, "true", "1", 1) and not on_device:
        text = f'"{first}" has no GPU commands to record'
        yield Problem(key=(*at, "session", "enable_graph_capture"), text=text)


def _check_format(profile: TargetProfile) -> Iterator[Problem]:
    """The layout of a cache is changed by a graph rewrite, which the runtime refuses on an ORT model."""
    key = "session.gqa_value_layout"
    if profile.optimization.format != "ort":
        return
    for variant in profile.variants:
        if variant.session_config.get(key, "BNSH") != "BNSH":
            text = f'the runtime refuses {key} = "{variant.session_config[key]}" on an ORT model; use "onnx"'
            yield Problem(key=("optimization", "format"), text=text)


def _each_variant(rule: Callable[[Variant, Key], Iterator[Problem]]) -> Callable[[TargetProfile], Iterator[Problem]]:
    def check(profile: TargetProfile) -> Iterator[Problem]:
        for position, variant in enumerate(profile.variants):
            yield from rule(variant, ("variants", position))

    return check


def _check_spinning(variant: Variant, at: Key) -> Iterator[Problem]:
    config = variant.session_config
    for pool in ("intra_op", "inter_op"):
        off = is_on(config, f"session.{pool}.allow_spinning") is False
        for key in (f"session.{pool}.spin_duration_us", f"session.{pool}.spin_backoff_max"):
            if off and key in config:
                text = f"has no effect while session.{pool}.allow_spinning is off"
                yield Problem(key=(*at, "session_config", key), text=text)


def _check_fallback(variant: Variant, at: Key) -> Iterator[Problem]:
    key = "session.disable_cpu_ep_fallback"
    if is_on(variant.session_config, key) and any(provider.name == "cpu" for provider in variant.providers):
        text = "cannot be used with the provider cpu in the chain: the runtime refuses both"
        yield Problem(key=(*at, "session_config", key), text=text)


def _check_affinities(variant: Variant, at: Key) -> Iterator[Problem]:
    """The runtime asks for one group of processors for each thread but the caller's."""
    key = "session.intra_op_thread_affinities"
    groups = str(variant.session_config.get(key, ""))
    threads = variant.session.get("intra_op_num_threads", 0)
    if not groups or not isinstance(threads, int):
        return
    count = groups.count(";") + 1
    if count != threads - 1:
        needed = max(threads - 1, 0)
        text = f"has {count} groups of processors, but session.intra_op_num_threads = {threads} needs {needed}"
        yield Problem(key=(*at, "session_config", key), text=text)


def _check_precision(profile: TargetProfile) -> Iterator[Problem]:
    """Every method that is named must exist and suit the provider that will run its model."""
    precision = profile.precision
    for position, name in enumerate(precision.order):
        if name not in METHODS:
            yield Problem(key=("precision", "order", position), text=describe_unknown_method(name, METHODS))
    for position, variant in enumerate(profile.variants):
        own = variant.precision is not None
        method = variant.precision or precision.method
        key: Key = ("variants", position, "precision") if own else ("precision", "method")
        if method not in METHODS:
            if method not in (NONE, AUTO):
                yield Problem(key=key, text=describe_unknown_method(method, (NONE, AUTO, *METHODS)))
            continue
        provider = variant.providers[0].name
        if provider in provider_names() and method not in find_provider(provider).numerics.precisions:
            taken = ", ".join(find_provider(provider).numerics.precisions) or "none"
            yield Problem(key=key, text=f'the provider "{provider}" does not support {method}; it supports: {taken}')
        yield from _check_settings(profile, method)


def _check_settings(profile: TargetProfile, method: str) -> Iterator[Problem]:
    """A setting that the method does not read would be silently ignored."""
    takes = METHODS[method].takes
    for name in sorted(profile.precision.model_fields_set - set(takes) - {"method", "order", "calibrated"}):
        if getattr(profile.precision, name) != Precision.model_fields[name].default:
            text = f"{method} does not use this key; it uses: {', '.join(sorted(takes))}"
            yield Problem(key=("precision", name), text=text)


def _check_preset(profile: TargetProfile) -> Iterator[Problem]:
    """Optimum's O4 is half precision for GPUs."""
    if profile.optimization.preset != "O4":
        return
    for variant in profile.variants:
        first = variant.providers[0].name
        if first in provider_names() and find_provider(first).device_memory is None:
            text = f'"O4" is for GPUs, and the variant {variant.name} runs on "{first}"; O3 is the highest there'
            yield Problem(key=("optimization", "preset"), text=text)


_RULES: tuple[Callable[[TargetProfile], Iterator[Problem]], ...] = (
    _check_options,
    _check_names,
    _check_architecture,
    _check_core,
    _check_sections,
    _check_providers,
    check_carriers,
    check_libraries,
    _each_variant(check_knowledge),
    _each_variant(check_compile),
    check_recipes,
    _check_format,
    _check_precision,
    _check_preset,
    _each_variant(_check_spinning),
    _each_variant(_check_fallback),
    _each_variant(_check_device_memory),
    _each_variant(_check_affinities),
)
