"""What the providers of a variant do with a model, under the profile's options. Pure, as all planning."""

from __future__ import annotations

from bundler.model.requirements import Need
from bundler.profiles.asked import as_texts
from bundler.profiles.schema import TargetProfile, Variant
from bundler.providers.knowledge import FreeSizes, Rounding
from bundler.providers.needs import Place, list_needs
from bundler.providers.registry import find_provider

_TF32 = "may compute in TF32 (10 bits of fraction)"
_ROUNDINGS = {
    "half": "computes in half precision",
    "bfloat16": "computes in bfloat16 where the CPU multiplies in it",
}


def wants_ranges(variant: Variant) -> bool:
    """Whether its compiler here takes sizes that are not fixed with ranges alone, and the profile gives none: then the
    model is compiled on the device.
    """
    compiler = find_provider(variant.providers[0].name).compiler
    given = as_texts(variant.providers[0])
    return compiler is not None and bool(compiler.ranges) and not all(given.get(key) for key in compiler.ranges)


def judge_free_sizes(variant: Variant) -> FreeSizes:
    """What the variant's first provider does with sizes that are not fixed."""
    first = variant.providers[0]
    return find_provider(first.name).judge_free_sizes(as_texts(first))


def judge_rounding(profile: TargetProfile, variant: Variant) -> Rounding:
    """How coarsely the variant's first provider computes a model in floating point."""
    first = variant.providers[0]
    return find_provider(first.name).judge_rounding(as_texts(first), profile.platform.compute_capability)


def computes_tf32(profile: TargetProfile, variant: Variant) -> bool:
    """Whether it is TF32 that the variant's first provider rounds to."""
    return find_provider(variant.providers[0].name).numerics.tf32 and judge_rounding(profile, variant) == "half"


def explain_rounding(profile: TargetProfile, variant: Variant) -> str:
    """What its first provider computes floats in, where that is less than the model has; else empty."""
    return _TF32 if computes_tf32(profile, variant) else _ROUNDINGS.get(judge_rounding(profile, variant), "")


def variant_needs(variant: Variant, profile: TargetProfile) -> tuple[Need, ...]:
    """What the providers of a variant use of the device's own software, under the profile's options."""
    place = Place(
        system=profile.platform.system, runtime=profile.runtime.version, own_build=profile.runtime.custom_build
    )
    return list_needs(((find_provider(entry.name), as_texts(entry)) for entry in variant.providers), place)
