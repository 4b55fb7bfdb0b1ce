"""Reads what earlier versions wrote: `runtime.json` and `bundle.json` of one model as a bundle of one component."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bundler.model.runtime import RUNTIME_SCHEMA, SOLE

OF_ONE_MODEL: Final = 3
"""The last schema of bundles of one model."""

_COMPONENT_OF_RUNTIME: Final = frozenset(
    (
        *("model", "model_digest", "signature", "variants", "golden_digest"),
        *("unstable_outputs", "preprocessing", "fixed_sizes"),
    )
)
_COMPONENT_OF_MANIFEST: Final = frozenset(
    (
        *("model", "synthetic_inputs", "unstable_outputs", "variants", "stages", "decisions", "checks", "gate"),
        *("reservations", "shortfalls", "golden", "artifacts"),
    )
)
"""What schema 3 has at the top, and schema 4 in each component."""


def upgrade_runtime(data: Any) -> Any:
    """`runtime.json` of schema 3 as one of schema 4. Anything else is returned as it is, for its reader to refuse."""
    if not isinstance(data, Mapping) or data.get("schema") != OF_ONE_MODEL or "components" in data:
        return data
    kept, component = _split(data, _COMPONENT_OF_RUNTIME)
    component |= {"name": SOLE, "golden": "golden"}
    return {**kept, "schema": RUNTIME_SCHEMA, "name": data.get("model"), "components": [component]}


def upgrade_manifest(data: dict[str, Any]) -> dict[str, Any]:
    """`bundle.json` of schema 2 or 3 as one of schema 4, its `schema` unchanged; others as they are."""
    if data.get("schema") not in (2, OF_ONE_MODEL) or "components" in data:
        return data
    kept, component = _split(data, _COMPONENT_OF_MANIFEST)
    gate, model = component.get("gate"), component.get("model")
    if isinstance(gate, Mapping) and "budget_mb" in gate:
        component["gate"], budget = _split(gate, frozenset({"budget_mb"}))
        kept |= budget
    name = model.get("name") if isinstance(model, Mapping) else None
    return {**kept, "name": name, "components": [{**component, "name": SOLE}]}


def _split(data: Mapping[str, Any], moved: frozenset[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What stays, and what is moved."""
    return (
        {key: value for key, value in data.items() if key not in moved},
        {key: value for key, value in data.items() if key in moved},
    )
