"""Incompatible values in the variants of accelerators: a runtime that lacks the provider, incompatible options,
settings of a compiler that is not available.
"""

from __future__ import annotations

from collections.abc import Iterator

from bundler.profiles.asked import is_compiled_here, shipped_variants
from bundler.profiles.chain import Key
from bundler.profiles.methods import METHODS, NONE
from bundler.profiles.options import check_table
from bundler.profiles.problems import Problem, describe_unknown_method
from bundler.profiles.schema import Provider, TargetProfile, Variant
from bundler.providers.availability import explain_absence, find_carrier
from bundler.providers.registry import find_provider, provider_names
from bundler.providers.toolkits import explain_refusal
from bundler.providers.values import as_entry, normalize_value


def check_carriers(profile: TargetProfile) -> Iterator[Problem]:
    """Every provider must be in the runtime that is shipped, or in a plugin beside it."""
    if profile.runtime.custom_build or profile.platform.system == "web":
        return
    for position, variant in enumerate(profile.variants):
        for place, entry in enumerate(variant.providers):
            if entry.name in provider_names() and not variant.custom_build:
                yield from _check_carrier(profile, entry, ("variants", position, "providers", place, "name"))


def _check_carrier(profile: TargetProfile, entry: Provider, at: Key) -> Iterator[Problem]:
    known, runtime, platform = find_provider(entry.name), profile.runtime, profile.platform
    if not known.presence.availability and not known.presence.gone:
        return  # in every flavour of the runtime
    where = (runtime.package, runtime.version, runtime.plugins, platform.system, platform.architecture)
    if find_carrier(known, *where) is None:
        why, hint = explain_absence(known, *where)
        yield Problem(key=at, text=f"{why}; {hint}" if hint else why)


def check_libraries(profile: TargetProfile) -> Iterator[Problem]:
    """A device's libraries must not be older than the compiler of what they are to open."""
    refusals = {}
    for variant in shipped_variants(profile):
        first = variant.providers[0].name
        compiler = find_provider(first).compiler if first in provider_names() else None
        if compiler is not None and compiler.toolkit is not None and is_compiled_here(variant):
            refusals[first] = explain_refusal(compiler.toolkit, profile.runtime.plugins)
    for package, text in (refusal for refusal in refusals.values() if refusal is not None):
        yield Problem(key=("runtime", "plugins", package), text=text)


def check_knowledge(variant: Variant, at: Key) -> Iterator[Problem]:
    """What a provider's own file finds wrong among its options."""
    for position, entry in enumerate(variant.providers):
        if entry.name not in provider_names():
            continue  # reported elsewhere
        known = find_provider(entry.name)
        rules = {rule.key: rule for rule in known.options.rules}
        if known.options.check is None or any(key not in rules for key in entry.options):
            continue
        try:
            options = {key: as_entry(normalize_value(rules[key], value)) for key, value in entry.options.items()}
        except ValueError:
            continue  # reported elsewhere
        for key, text in known.options.check(options):
            yield Problem(key=(*at, "providers", position, "options", key), text=text)


def check_compile(variant: Variant, at: Key) -> Iterator[Problem]:
    """Settings of the first provider's compiler, by its table."""
    first = variant.providers[0].name
    compiler = find_provider(first).compiler if first in provider_names() else None
    if compiler is None:
        text = f'models for "{first}" are not compiled before shipping'
        for key in variant.compile if first in provider_names() else ():
            yield Problem(key=(*at, "compile", key), text=text)
        return
    problems = list(check_table(variant.compile, compiler.options, (*at, "compile")))
    yield from problems
    if problems or compiler.check is None:
        return
    rules = {rule.key: rule for rule in compiler.options}
    settings = {key: as_entry(normalize_value(rules[key], value)) for key, value in variant.compile.items()}
    for key, text in compiler.check(settings):
        yield Problem(key=(*at, "compile", key), text=text)


def check_recipes(profile: TargetProfile) -> Iterator[Problem]:
    """Methods for calibration data must exist and suit the provider that will run their models."""
    yield from _check_recipe(profile.precision.calibrated, ("precision", "calibrated"))
    for position, variant in enumerate(profile.variants):
        if variant.calibrated is not None:
            yield from _check_recipe(variant.calibrated, ("variants", position, "calibrated"))
        method = variant.calibrated or profile.precision.calibrated
        first = variant.providers[0].name
        if method not in METHODS or first not in provider_names() or method in find_provider(first).numerics.precisions:
            continue
        taken = ", ".join(find_provider(first).numerics.precisions) or "none"
        key: Key = ("variants", position, "calibrated")
        yield Problem(key=key, text=f'the provider "{first}" does not support {method}; it supports: {taken}')


def _check_recipe(name: str, at: Key) -> Iterator[Problem]:
    if name not in (NONE, *METHODS):
        yield Problem(key=at, text=describe_unknown_method(name, (NONE, *METHODS)))
