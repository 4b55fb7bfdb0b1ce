"""What a profile asks for its variants, before any model is known."""

from __future__ import annotations

from bundler.profiles.schema import OptionValue, Provider, TargetProfile, Variant
from bundler.providers.registry import find_provider
from bundler.providers.rules import HERE, is_set


def shipped_variants(profile: TargetProfile) -> tuple[Variant, ...]:
    """Those that a bundle holds: not the ones that only a runtime of the user's own build could run."""
    return tuple(variant for variant in profile.variants if profile.runtime.custom_build or not variant.custom_build)


def is_compiled_here(variant: Variant) -> bool:
    """Whether the model is compiled for the variant's first provider before shipping."""
    compiler = find_provider(variant.providers[0].name).compiler
    asked = variant.compile.get(HERE.key)
    return compiler is not None and (compiler.by_default if asked is None else is_set(as_text(asked)))


def as_texts(entry: Provider) -> dict[str, str]:
    """All options as text; also those that choose a plugin's device, on which hangs what it computes in."""
    return {key: as_text(value) for key, value in entry.options.items()}


def as_text(value: OptionValue) -> str:
    """Options cross into the runtime as text; booleans as `1` and `0`, which all of its parsers take."""
    return str(int(value)) if isinstance(value, bool) else str(value)
