"""Why something is generated on the device, as a README says it."""

from __future__ import annotations

from bundler.profiles.schema import TargetProfile, Variant
from bundler.providers.registry import find_provider
from bundler.providers.rules import HERE, is_set

_DEVICE_ONLY = "It can only be generated on the device."
_FREE = "It was not compiled ahead of time because sizes are open: fix all of them (--dim, --shape) to compile it."
_BY_PROFILE = "The target's profile asks for this."


def describe_deferral(profile: TargetProfile, name: str) -> str:
    """Why the profile's variant `name` has it generated on the device: only the device can, or this build did not."""
    variant = next((variant for variant in profile.variants if variant.name == name), None)
    return _DEVICE_ONLY if variant is None else _explain(variant)


def _explain(variant: Variant) -> str:
    compiler = find_provider(variant.providers[0].name).compiler
    if compiler is None:
        return _DEVICE_ONLY
    here = variant.compile.get(HERE.key, compiler.by_default)
    return _FREE if compiler.ranges and is_set(str(here)) else _BY_PROFILE
