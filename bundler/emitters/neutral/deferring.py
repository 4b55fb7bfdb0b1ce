"""Why something is left to the device: what a README says of it."""

from __future__ import annotations

from bundler.profiles.schema import TargetProfile, Variant
from bundler.providers.registry import find_provider
from bundler.providers.rules import HERE, is_set

_NOBODY = "Nobody but the device can make it."
_FREE = "It was not made before shipping, for sizes are free: a build with all of them fixed (--dim, --shape) does."
_LEFT = "The target's profile leaves it to the device."


def tell_deferral(profile: TargetProfile, name: str) -> str:
    """Why the device makes it for the profile's variant `name`: nobody else can, or this build did not."""
    variant = next((variant for variant in profile.variants if variant.name == name), None)
    return _NOBODY if variant is None else _tell(variant)


def _tell(variant: Variant) -> str:
    compiler = find_provider(variant.providers[0].name).compiler
    if compiler is None:
        return _NOBODY
    here = variant.compile.get(HERE.key, compiler.by_default)
    return _FREE if compiler.ranges and is_set(str(here)) else _LEFT
