"""How a session is opened on the device, and on the building machine where another provider stands in. Pure, as all
planning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bundler.model.plan import VariantPlan
from bundler.model.runtime import ProviderEntry
from bundler.planning.rules import DISABLE_ALL
from bundler.profiles.asked import as_text
from bundler.profiles.schema import OptionValue, Provider, TargetProfile, Variant
from bundler.providers.availability import find_carrier
from bundler.providers.knowledge import ProviderKnowledge
from bundler.providers.registry import find_provider

REHEARSAL = {"graph_optimization_level": DISABLE_ALL}
"""How a model is opened where another provider stands in for the one that it ships for: as it was baked."""

STAND_IN = "cpu"
"""The provider that every runtime has, so that it can stand in for any other."""


def split_options(
    known: ProviderKnowledge, options: Mapping[str, OptionValue]
) -> tuple[dict[str, str], dict[str, str]]:
    """A provider's options as text, and those of them that choose a plugin's device, by the plugin's own keys."""
    texts = {key: as_text(value) for key, value in options.items()}
    select = {known.presence.select_by[key]: value for key, value in texts.items() if key in known.presence.select_by}
    return {key: value for key, value in texts.items() if key not in known.presence.select_by}, {
        **known.presence.select,
        **select,
    }


def plugin_module(known: ProviderKnowledge) -> str:
    """The Python module of the plugin that carries a provider; empty where none does."""
    return next((row.module for row in known.presence.availability if row.is_plugin), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """Which distribution of the profile has a provider: the plugin's module and version, both empty for the runtime."""

    module: str = ""
    package: str = ""
    version: str = ""


def carrier_of(profile: TargetProfile, name: str) -> Carrier:
    """Where the provider comes from in the runtime that the profile ships."""
    found = find_carrier(
        find_provider(name),
        profile.runtime.package,
        profile.runtime.version,
        profile.runtime.plugins,
        profile.platform.system,
        profile.platform.architecture,
    )
    if found is None or not found.is_plugin:
        return Carrier()
    return Carrier(module=found.module, package=found.package, version=profile.runtime.plugins[found.package])


def provider_entry(variant: Variant, entry: Provider, carrier: Carrier) -> ProviderEntry:
    """One provider of a variant's chain, as `runtime.json` has it."""
    known = find_provider(entry.name)
    options, select = split_options(known, entry.options)
    return ProviderEntry(
        name=known.runtime_name,
        options=options,
        device=known.device_memory if variant.keep_on_device else None,
        library=carrier.module or None,
        select=select if carrier.module else {},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How a session is opened on a variant's model; the fields are those of `VariantPlan`."""

    providers: tuple[ProviderEntry, ...]
    session: Mapping[str, Any]
    session_config: Mapping[str, str]
    disabled_optimizers: tuple[str, ...]
    plugins: Mapping[str, str]


def session_of(variant: Variant, opening: Opening | VariantPlan) -> dict[str, Any]:
    """The session as the bundle will open it, for the comparison of the model that ships.

    Where the baking runtime lacks a provider, the one that rehearses for it runs the model as it is written; the
    bundle's own runtime is what the proof runs.
    """
    stand_ins = {rehearser(entry.name) for entry in variant.providers} - {""}
    if stand_ins:
        names = [find_provider(name).runtime_name for name in sorted(stand_ins)]
        return {"providers": [[name, {}] for name in names], "session": dict(REHEARSAL)}
    return {
        "providers": [[entry.name, dict(entry.options)] for entry in opening.providers],
        "session": dict(opening.session),
        "session_config": dict(opening.session_config),
        "disabled_optimizers": list(opening.disabled_optimizers),
    }


def rehearser(name: str) -> str:
    """The provider that stands in for another on the building machine; empty for one that every runtime has."""
    known = find_provider(name)
    return known.validation_provider or ("" if known.graph.takes_fusions else STAND_IN)
