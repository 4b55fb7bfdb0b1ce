"""What becomes of each variant of a target: compiled before shipping, made on the device, opened as it is, left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bundler.profiles.schema import TargetProfile, Variant
from bundler.providers.knowledge import ProviderKnowledge
from bundler.providers.registry import find_provider

Fate = Literal["here", "on the device", "as it is", "left out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantOutlook:
    """One variant. `providers` are titles in the order of the chain; `text` says in words what becomes of it, and
    `threshold` what share of the graph its first provider must take, empty where it may take any.
    """

    name: str
    providers: tuple[str, ...]
    fate: Fate
    text: str
    threshold: str


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


def _foresee(variant: Variant, profile: TargetProfile) -> VariantOutlook:
    chain = [find_provider(provider.name) for provider in variant.providers]
    fate, text = _tell(variant, chain[0], left_out=variant not in shipped_variants(profile))
    return VariantOutlook(
        name=variant.name,
        providers=tuple(provider.title for provider in chain),
        fate=fate,
        text=text,
        threshold="" if fate == "left out" else _threshold(variant),
    )


def _tell(variant: Variant, first: ProviderKnowledge, *, left_out: bool) -> tuple[Fate, str]:
    if left_out:
        return "left out", _tell_left_out(first)
    if is_compiled_here(variant):
        return "here", f"compiled for {first.title} before shipping"
    if first.deferral is not None:
        return "on the device", f"the {first.deferral.thing} is made on the device, by prewarm or at the first start"
    return "as it is", "the runtime opens the model as it ships"


def _tell_left_out(first: ProviderKnowledge) -> str:
    sentences = ["left out, because only a runtime of your own build has it (with one, set runtime.custom_build)"]
    sentences += [first.gone.rstrip(".")] if first.gone else []
    sentences += [f"In its place: {first.instead.rstrip('.')}"] if first.instead else []
    return ". ".join(sentences)


def _threshold(variant: Variant) -> str:
    if not variant.least_share:
        return ""
    then = "the build fails" if variant.shortfall == "fail" else "that is reported, and the bundle marked"
    return f"must take {variant.least_share:.0%} of the nodes; with fewer {then}"
