"""Finds provider files, the built-in ones and those of other packages, through the entry point group."""

from __future__ import annotations

import difflib
import functools
from importlib.metadata import EntryPoint, entry_points

from bundler.model.errors import EnvironmentMissingError, ProfileError
from bundler.providers.knowledge import ProviderKnowledge

GROUP = "bundler.providers"


@functools.cache
def _registered() -> dict[str, EntryPoint]:
    found = {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}
    if not found:
        # No static list to fall back on: it would hide that stages and emitters are missing in the same way.
        raise EnvironmentMissingError(
            "no execution provider is registered",
            hint="bundler's installation is older than its source; install it again",
        )
    return found


def provider_names() -> tuple[str, ...]:
    """Short names of all registered providers, sorted."""
    return tuple(_registered())


@functools.cache
def find_provider(name: str) -> ProviderKnowledge:
    """What is known of the provider with this short name. Raises `ProfileError` for an unknown one."""
    entry = _registered().get(name)
    if entry is None:
        raise ProfileError(
            describe_unknown(name),
            hint="a provider is one file in bundler/providers/, or another package's entry point",
        )
    knowledge = entry.load()
    if not isinstance(knowledge, ProviderKnowledge):
        raise EnvironmentMissingError(
            f"the entry point {GROUP}:{name} ({entry.value}) is no ProviderKnowledge",
            hint="ask the maker of that package",
        )
    return knowledge


@functools.cache
def find_by_runtime_name(name: str) -> ProviderKnowledge | None:
    """What is known of the provider that the runtime calls so, as `CPUExecutionProvider`; None for an unknown one."""
    found = (find_provider(short) for short in provider_names())
    return next((knowledge for knowledge in found if knowledge.runtime_name == name), None)


def describe_unknown(name: str) -> str:
    """One sentence: the name is unknown, which are known, and which was perhaps meant."""
    names = provider_names()
    close = difflib.get_close_matches(name.lower(), names, n=1)
    meant = f'; did you mean "{close[0]}"?' if close else ""
    return f"this bundler knows no execution provider {name!r} (known: {', '.join(names)}){meant}"
