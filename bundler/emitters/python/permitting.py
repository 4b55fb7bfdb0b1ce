"""What the loader of a bundle lets its `runtime.json` ask for: by name, and no more than a profile may.

The loader stands alone, so these names go with it as data. They protect an application whose model's folder was
replaced, not one whose package was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bundler.model.runtime import ProviderEntry, RuntimeConfig
from bundler.profiles.options import CONFIG, SESSION, Rules, index_rules
from bundler.providers.registry import find_by_runtime_name
from bundler.verification.configuration import SET_BY_BUNDLER

PERMITTED = "permitted.json"
"""Its name, among the modules of the loader."""


def render_permitted(config: RuntimeConfig) -> str:
    """The text of the file for the providers of `config`; an unknown one may ask for what it asks now."""
    entries = [entry for _, variant in config.pairs for entry in variant.providers]
    data = {
        "session": sorted((*_list_free(SESSION), *SET_BY_BUNDLER)),
        "session_config": sorted(_list_free(CONFIG)),
        "providers": {entry.name: _describe_provider(entry) for entry in entries},
    }
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def _list_free(rules: Rules) -> Iterator[str]:
    """Options that a profile may set: those that name files or write them are decided by bundler, or unknown."""
    return (key for key, rule in rules.items() if not rule.decided)


def _describe_provider(entry: ProviderEntry) -> dict[str, Any]:
    knowledge = find_by_runtime_name(entry.name)
    if knowledge is None:
        plugins = [entry.library] if entry.library else []
        return {"options": sorted(entry.options), "plugins": plugins, "prepared": []}
    deferral = knowledge.deferral
    prepared = (deferral.folder_option, *deferral.options) if deferral else ()
    return {
        "options": sorted(_list_free(index_rules(knowledge.options.rules))),
        "plugins": sorted(carrier.module for carrier in knowledge.presence.availability if carrier.is_plugin),
        "prepared": sorted(filter(None, prepared)),
    }
