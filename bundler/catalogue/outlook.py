"""How each variant of a target is prepared: compiled before shipping, generated on the device, unchanged, left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bundler.model.requirements import Need
from bundler.planning.compile import plan_compilation, plan_preparation
from bundler.planning.settle import explain_left_out
from bundler.planning.traits import judge_free_sizes, variant_needs, wants_ranges
from bundler.profiles.asked import shipped_variants
from bundler.profiles.schema import TargetProfile, Variant
from bundler.providers.knowledge import SIZES
from bundler.providers.registry import find_provider

Fate = Literal["here", "on the device", "as it is", "left out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantOutlook:
    """One variant. `providers` are titles in the order of the chain; `text` describes its preparation, `threshold` the
    share of nodes that its first provider must be assigned (empty: any), `sizes` what it does with sizes that are not
    fixed (empty: it accepts them). `needs` are its requirements on the device's software.
    """

    name: str
    providers: tuple[str, ...]
    fate: Fate
    text: str
    threshold: str
    sizes: str = ""
    needs: tuple[Need, ...] = ()


def foresee_variants(profile: TargetProfile) -> tuple[VariantOutlook, ...]:
    """All variants in order of preference. Raises `ProfileError` for a provider that is not registered."""
    return tuple(_foresee(variant, profile) for variant in profile.variants)


def _foresee(variant: Variant, profile: TargetProfile) -> VariantOutlook:
    fate, text = _describe_fate(variant, left_out=variant not in shipped_variants(profile))
    return VariantOutlook(
        name=variant.name,
        providers=tuple(find_provider(provider.name).title for provider in variant.providers),
        fate=fate,
        text=text,
        threshold="" if fate == "left out" else _describe_threshold(variant),
        sizes="" if fate == "left out" else SIZES[judge_free_sizes(variant)],
        needs=() if fate == "left out" else variant_needs(variant, profile),
    )


def _describe_fate(variant: Variant, *, left_out: bool) -> tuple[Fate, str]:
    if left_out:
        return "left out", f"left out, because {explain_left_out(variant)}"
    compilation, preparation = plan_compilation(variant), plan_preparation(variant)
    if compilation is not None:
        where = " where sizes are fixed (--dim, --shape) or have ranges, else on the device"
        title = compilation.known.title
        return "here", f"compiled for {title} before shipping{where if wants_ranges(variant) else ''}"
    if preparation is not None:
        return "on the device", f"the {preparation.thing} is generated on the device, at install or first start"
    return "as it is", "the runtime loads the model as shipped"


def _describe_threshold(variant: Variant) -> str:
    if not variant.least_share:
        return ""
    then = "otherwise the build fails" if variant.shortfall == "fail" else "otherwise a warning, also in the manifest"
    return f"requires at least {variant.least_share:.0%} of the nodes; {then}"
