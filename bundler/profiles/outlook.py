"""What becomes of each variant of a target: compiled before shipping, made on the device, opened as it is, left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bundler.model.requirements import Need
from bundler.profiles.schema import Provider, TargetProfile, Variant
from bundler.providers.knowledge import SIZES, FreeSizes, ProviderKnowledge, Rounding
from bundler.providers.needs import Place, list_needs
from bundler.providers.registry import find_provider

Fate = Literal["here", "on the device", "as it is", "left out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantOutlook:
    """One variant. `providers` are titles in the order of the chain; `text` says in words what becomes of it, and
    `threshold` what share of the graph its first provider must take, empty where it may take any. `sizes` says what it
    does with sizes that are not fixed, empty where it takes them; `needs` are what it uses of the device's software.
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


def shipped_variants(profile: TargetProfile) -> tuple[Variant, ...]:
    """Those that a bundle holds: not the ones that only a runtime of the user's own build could run."""
    return tuple(variant for variant in profile.variants if profile.runtime.custom_build or not variant.custom_build)


def is_compiled_here(variant: Variant) -> bool:
    """Whether the model is compiled for the variant's first provider before shipping."""
    compiler = find_provider(variant.providers[0].name).compiler
    return compiler is not None and str(variant.compile.get("here", compiler.by_default)).lower() in ("1", "true")


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
    return find_provider(variant.providers[0].name).tf32 and judge_rounding(profile, variant) == "half"


def explain_rounding(profile: TargetProfile, variant: Variant) -> str:
    """What its first provider computes floats in, where that is less than the model has; else empty."""
    return _TF32 if computes_tf32(profile, variant) else _ROUNDINGS.get(judge_rounding(profile, variant), "")


_TF32 = "may compute in TF32 (10 bits of fraction)"
_ROUNDINGS = {
    "half": "computes in half precision",
    "bfloat16": "computes in bfloat16 where the CPU multiplies in it",
}


def variant_needs(variant: Variant, profile: TargetProfile) -> tuple[Need, ...]:
    """What the providers of a variant use of the device's own software, under the profile's options."""
    place = Place(
        system=profile.platform.system, runtime=profile.runtime.version, own_build=profile.runtime.custom_build
    )
    return list_needs(((find_provider(entry.name), as_texts(entry)) for entry in variant.providers), place)


def as_texts(entry: Provider) -> dict[str, str]:
    """All options as text, booleans as `1` and `0`; also those that choose a plugin's device, on which hangs what it
    computes in.
    """
    return {key: str(int(value)) if isinstance(value, bool) else str(value) for key, value in entry.options.items()}


def _foresee(variant: Variant, profile: TargetProfile) -> VariantOutlook:
    chain = [find_provider(provider.name) for provider in variant.providers]
    fate, text = _tell(variant, chain[0], left_out=variant not in shipped_variants(profile))
    return VariantOutlook(
        name=variant.name,
        providers=tuple(provider.title for provider in chain),
        fate=fate,
        text=text,
        threshold="" if fate == "left out" else _threshold(variant),
        sizes="" if fate == "left out" else SIZES[judge_free_sizes(variant)],
        needs=() if fate == "left out" else variant_needs(variant, profile),
    )


def _tell(variant: Variant, first: ProviderKnowledge, *, left_out: bool) -> tuple[Fate, str]:
    if left_out:
        return "left out", f"left out, because {explain_left_out(first)}"
    if is_compiled_here(variant):
        where = " where sizes are fixed (--dim, --shape) or have ranges, else on the device"
        return "here", f"compiled for {first.title} before shipping{where if wants_ranges(variant) else ''}"
    if first.deferral is not None:
        return "on the device", f"the {first.deferral.thing} is made on the device, at install or first start"
    return "as it is", "the runtime opens the model as it ships"


def explain_left_out(first: ProviderKnowledge) -> str:
    """Why a variant of this provider is not built, and what would change that."""
    sentences = ["only a runtime of your own build has it (with one, set runtime.custom_build)"]
    sentences += [first.gone.rstrip(".")] if first.gone else []
    sentences += [f"In its place: {first.instead.rstrip('.')}"] if first.instead else []
    return ". ".join(sentences)


def _threshold(variant: Variant) -> str:
    if not variant.least_share:
        return ""
    then = "the build fails" if variant.shortfall == "fail" else "that is reported, and the bundle marked"
    return f"must take {variant.least_share:.0%} of the nodes; with fewer {then}"
