"""Finds provider files, the built-in ones and those of other packages, through the entry point group."""

from __future__ import annotations

import difflib
import functools

from bundler.model.errors import EnvironmentMissingError, ProfileError
from bundler.model.registered import find_registered, is_own, registered_names
from bundler.providers.knowledge import ProviderKnowledge

GROUP = "bundler.providers"


def provider_names() -> tuple[str, ...]:
    """Short names of all registered providers, sorted. Raises `EnvironmentMissingError` where there are none."""
    names = registered_names(GROUP)
    if not names:
        # No static list to fall back on: it would hide that stages and emitters are missing in the same way.
        raise EnvironmentMissingError(
            "no execution provider is registered",
            hint="bundler's installation is older than its source; install it again",
        )
    return names


@functools.cache
def find_provider(name: str) -> ProviderKnowledge:
    """What is known of the provider with this short name. Raises `ProfileError` for an unknown one."""
    entry = find_registered(GROUP, name)
    if entry is None:
        raise ProfileError(
            describe_unknown(name),
            hint="a provider is one file in bundler/providers/, or another package's entry point",
        )
    knowledge = entry.load()
    if not isinstance(knowledge, ProviderKnowledge):
        raise EnvironmentMissingError(
            f"the entry point {GROUP}:{name} ({entry.value}) is not a ProviderKnowledge",
            hint="report this to the author of that package",
        )
    return knowledge


@functools.cache
def find_by_runtime_name(name: str) -> ProviderKnowledge | None:
    """What is known of the provider that the runtime calls so, as `CPUExecutionProvider`; None for an unknown one.
    Ours counts before another package's.
    """
    names = sorted(provider_names(), key=lambda short: not is_own(GROUP, short))
    found = (find_provider(short) for short in names)
    return next((knowledge for knowledge in found if knowledge.runtime_name == name), None)


def describe_unknown(name: str) -> str:
    """One sentence: the name is unknown, which are known, and which was perhaps meant."""
    names = provider_names()
    close = difflib.get_close_matches(name.lower(), names, n=1)
    meant = f'; did you mean "{close[0]}"?' if close else ""
    return f"this bundler knows no execution provider {name!r} (known: {', '.join(names)}){meant}"
