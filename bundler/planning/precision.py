"""The precision of each variant, and the step that applies it. Pure, like all planning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bundler.model.codec import encode
from bundler.model.errors import UsageError
from bundler.model.plan import Decision, Step
from bundler.model.runtime import Gate
from bundler.profiles.methods import AUTO, METHODS, NONE, Method
from bundler.profiles.schema import Precision, TargetProfile, Variant
from bundler.providers.registry import find_provider

CALIBRATION_HINT = (
    "give real inputs with --calibration (a folder of .npz files, images, audio or texts, or file.py:function); "
    "--calibration synthetic generates inputs, and marks the bundle as not for shipping"
)


def asked_method(profile: TargetProfile, variant: Variant) -> str:
    """The profile's setting: a method's name, `none` or `auto`."""
    return variant.precision or profile.precision.method


def candidate_methods(profile: TargetProfile, variant: Variant) -> tuple[str, ...]:
    """The methods that `auto` tries for a variant, in order; those that its provider does not support are omitted."""
    provider = find_provider(variant.providers[0].name)
    return tuple(
        name for name in profile.precision.order or provider.numerics.tries if name in provider.numerics.precisions
    )


def choose_methods(profile: TargetProfile, decided: Mapping[str, str]) -> dict[str, str]:
    """The method of each variant by name. An automatic choice counts as `none` until it is made."""
    asked = {variant.name: asked_method(profile, variant) for variant in profile.variants}
    return {name: decided.get(name, NONE if method == AUTO else method) for name, method in asked.items()}


def may_calibrate(profile: TargetProfile) -> bool:
    """Whether any method that a build of `profile` may use or try requires calibration data."""
    return any(METHODS[name].needs_calibration for name in _possible_methods(profile))


def _possible_methods(profile: TargetProfile) -> set[str]:
    asked = [(variant, asked_method(profile, variant)) for variant in profile.variants]
    recipes = {variant.calibrated or profile.precision.calibrated for variant in profile.variants}
    return (recipes & METHODS.keys()) | {
        name
        for variant, method in asked
        for name in (candidate_methods(profile, variant) if method == AUTO else (method,))
        if name in METHODS
    }


def method_environments(profile: TargetProfile) -> tuple[str, ...]:
    """The environments that a build of `profile` may need for precision."""
    names = _possible_methods(profile)
    return tuple(sorted({find_environment(METHODS[name], profile.precision) for name in names}))


def find_environment(method: Method, precision: Precision) -> str:
    """The environment in which the method's stage runs."""
    algorithm = precision.algorithm if "algorithm" in method.takes else None
    return method.environments.get(algorithm or str(method.options.get("algorithm", "")), method.environment)


def precision_step(
    method: Method, precision: Precision, *, variant: str, source: str, calibration: str | None, gate: Gate
) -> Step:
    """The step that quantises or converts a variant. Raises `UsageError` when it lacks calibration data."""
    if method.needs_calibration and calibration is None:
        raise UsageError(f"{method.name} requires calibration data, and none was given", hint=CALIBRATION_HINT)
    inputs = {"model": source}
    if method.needs_calibration and calibration is not None:
        inputs["samples"] = calibration
    return Step(
        id=f"{variant}/{method.stage}",
        stage=method.stage,
        inputs=inputs,
        options=method_options(method, precision, gate),
        environment=find_environment(method, precision),
        variant=variant,
        reason=f"precision {method.name}: {method.title}",
    )


def method_options(method: Method, precision: Precision, gate: Gate) -> dict[str, Any]:
    """The stage's options: the method's own, overridden by those of the profile."""
    asked = {name: getattr(precision, name) for name in method.takes}
    unset = {name: Precision.model_fields[name].default for name in method.takes}
    given = {method.takes[name]: value for name, value in asked.items() if value != unset[name]}
    options = {**method.options, **given}
    if options.get("keep_float") == "auto":
        options["least_sqnr_db"] = gate.default.sqnr_db
    if options.get("search"):
        options["gate"] = encode(gate)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}


def precision_decisions(profile: TargetProfile, decided: Mapping[str, str]) -> tuple[Decision, ...]:
    """The precision of each variant and its reason; empty where none was requested."""
    return tuple(
        _decision(profile, variant, decided) for variant in profile.variants if _is_requested(profile, variant)
    )


def _is_requested(profile: TargetProfile, variant: Variant) -> bool:
    return asked_method(profile, variant) != NONE


def _decision(profile: TargetProfile, variant: Variant, decided: Mapping[str, str]) -> Decision:
    asked = asked_method(profile, variant)
    subject = f"precision of {variant.name}"
    if asked != AUTO:
        return Decision(subject=subject, choice=asked, reason=f"set by the profile: {METHODS[asked].title}")
    names = ", ".join((NONE, *candidate_methods(profile, variant)))
    if variant.name in decided:
        reason = f"the fastest one that met the accuracy gate, of: {names}"
        return Decision(subject=subject, choice=decided[variant.name], reason=reason)
    reason = f"bundler measures the candidates and takes the fastest one that meets the accuracy gate: {names}"
    return Decision(subject=subject, choice=AUTO, reason=reason)
