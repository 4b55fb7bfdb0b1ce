"""Sessions on the device, and on the building machine with a validation provider. Pure, like all planning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bundler.model.plan import VariantPlan
from bundler.model.runtime import ProviderEntry
from bundler.planning.rules import DISABLE_ALL
from bundler.profiles.asked import as_text
from bundler.profiles.schema import OptionValue, Provider, TargetProfile, Variant
from bundler.providers.availability import find_carrier
from bundler.providers.knowledge import ProviderKnowledge
from bundler.providers.registry import find_provider

VALIDATION_SESSION = {"graph_optimization_level": DISABLE_ALL}
"""The session of a validation provider: the optimised model is not optimised again."""

STAND_IN = "cpu"
"""The provider that every runtime has, so that it can validate for any other."""


def split_options(
    known: ProviderKnowledge, options: Mapping[str, OptionValue]
) -> tuple[dict[str, str], dict[str, str]]:
    """A provider's options as text, and those that select a plugin's device, by the plugin's keys."""
    texts = {key: as_text(value) for key, value in options.items()}
    select = {known.presence.select_by[key]: value for key, value in texts.items() if key in known.presence.select_by}
    return {key: value for key, value in texts.items() if key not in known.presence.select_by}, {
        **known.presence.select,
        **select,
    }


def plugin_module(known: ProviderKnowledge) -> str:
    """The Python module of the plugin that contains a provider; empty if none does."""
    return next((row.module for row in known.presence.availability if row.is_plugin), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """The distribution that contains a provider: the plugin's module and version, empty for the runtime."""

    module: str = ""
    package: str = ""
    version: str = ""


def carrier_of(profile: TargetProfile, name: str) -> Carrier:
    """The distribution of the profile's runtime that contains the provider."""
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
    """The session on a variant's model; fields as in `VariantPlan`."""

    providers: tuple[ProviderEntry, ...]
    session: Mapping[str, Any]
    session_config: Mapping[str, str]
    disabled_optimizers: tuple[str, ...]
    plugins: Mapping[str, str]


_PACE: Final = frozenset({"session.force_spinning_stop", "session.intra_op_thread_affinities"})
"""Settings of a session that only say how its threads wait, and on which processors of the device they run."""


def session_to_compare(variant: Variant, opening: Opening) -> dict[str, Any]:
    """The session that compares the shipped model: that of `session_of` on one thread, as its reference was recorded,
    and without what else belongs to the device's threads alone. So a build does not depend on how many processors the
    machine has, and targets that differ in nothing else share the comparison; the bundle's own runtime is then verified
    with its own threads.
    """
    session = session_of(variant, opening)
    session["session"] = {**session["session"], "intra_op_num_threads": 1}
    config = {key: value for key, value in session.pop("session_config", {}).items() if key not in _PACE}
    disabled = session.pop("disabled_optimizers", [])
    return {
        **session,
        **({"session_config": config} if config else {}),
        **({"disabled_optimizers": disabled} if disabled else {}),
    }


def session_of(variant: Variant, opening: Opening | VariantPlan) -> dict[str, Any]:
    """The session that runs the shipped model here: the bundle's own, or that of the validation providers if the
    optimising runtime lacks a provider. The bundle's own runtime is used for verification.
    """
    stand_ins = {validation_provider_of(entry.name) for entry in variant.providers} - {""}
    if stand_ins:
        names = [find_provider(name).runtime_name for name in sorted(stand_ins)]
        return {"providers": [[name, {}] for name in names], "session": dict(VALIDATION_SESSION)}
    return {
        "providers": [[entry.name, dict(entry.options)] for entry in opening.providers],
        "session": dict(opening.session),
        "session_config": dict(opening.session_config),
        "disabled_optimizers": list(opening.disabled_optimizers),
    }


def validation_provider_of(name: str) -> str:
    """The validation provider of another on the building machine; empty for one that every runtime has."""
    known = find_provider(name)
    return known.validation_provider or ("" if known.graph.takes_fusions else STAND_IN)
