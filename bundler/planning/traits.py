"""How a variant's providers treat a model under the profile's options. Pure, like all planning."""

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
    """Whether its compiler requires ranges for dynamic sizes and the profile gives none: then the model is compiled on
    the device.
    """
    compiler = find_provider(variant.providers[0].name).compiler
    given = as_texts(variant.providers[0])
    return compiler is not None and bool(compiler.ranges) and not all(given.get(key) for key in compiler.ranges)


def judge_free_sizes(variant: Variant) -> FreeSizes:
    """How the variant's first provider treats dynamic sizes."""
    first = variant.providers[0]
    return find_provider(first.name).judge_free_sizes(as_texts(first))


def judge_rounding(profile: TargetProfile, variant: Variant) -> Rounding:
    """The floating-point precision in which the variant's first provider computes."""
    first = variant.providers[0]
    return find_provider(first.name).judge_rounding(as_texts(first), profile.platform.compute_capability)


def computes_tf32(profile: TargetProfile, variant: Variant) -> bool:
    """Whether the variant's first provider rounds to TF32."""
    return find_provider(variant.providers[0].name).numerics.tf32 and judge_rounding(profile, variant) == "half"


def explain_rounding(profile: TargetProfile, variant: Variant) -> str:
    """The precision in which its first provider computes, if lower than the model's; else empty."""
    return _TF32 if computes_tf32(profile, variant) else _ROUNDINGS.get(judge_rounding(profile, variant), "")


def variant_needs(variant: Variant, profile: TargetProfile) -> tuple[Need, ...]:
    """Requirements of a variant's providers on the device's software, under the profile's options.

    Those of the CPU provider are included: every runtime has it, also for a chain that does not name it.
    """
    place = Place(
        system=profile.platform.system, runtime=profile.runtime.version, own_build=profile.runtime.custom_build
    )
    chain = [(find_provider(entry.name), as_texts(entry)) for entry in variant.providers]
    return list_needs((*chain, (find_provider("cpu"), {})), place)
