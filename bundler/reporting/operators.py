"""The operators that all models of a bundle need, in ONNX Runtime's format for custom builds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bundler.reporting.data import ReportData
from bundler.stages.derive_operators.spec import SPEC

OPERATORS_NAME: Final = "required_operators.config"
_HEAD: Final = "# Operators of all variants of all components; a variant compiled for a device needs fewer.\n"


def render_operators(data: ReportData) -> str | None:
    """`domain;opset;Operator{types},…`, a line for each domain and opset. None where those of a variant are not known:
    a runtime without them would refuse its model.
    """
    lists = list(_list_operators(data))
    known = [found for found in lists if found is not None]
    return _HEAD + combine_operators(known) if len(known) == len(lists) else None


def _list_operators(data: ReportData) -> Iterator[Sequence[Mapping[str, Any]] | None]:
    """What `derive_operators` found for each variant."""
    for part in data.components:
        facts = {
            outcome.step: outcome.facts.get("operators") for outcome in part.outcomes if outcome.stage == SPEC.name
        }
        for variant in part.plan.variants:
            yield facts.get(f"{variant.name}/{SPEC.name}")


def combine_operators(lists: Sequence[Sequence[Mapping[str, Any]]]) -> str:
    """The lines for models with these operators. Types belong to an operator of every opset: the runtime's parser keeps
    those that it reads last.
    """
    types: dict[tuple[str, str], Any] = {}
    lines: dict[tuple[str, int], set[str]] = {}
    for found in (operator for operators in lists for operator in operators):
        key = (found["domain"], found["operator"])
        known = types.get(key, found["types"])
        types[key] = _join(known, found["types"]) if known and found["types"] else {}
        lines.setdefault((found["domain"], found["opset"]), set()).add(found["operator"])
    return "".join(
        f"{domain};{opset};{','.join(name + _show(types[domain, name]) for name in sorted(names))}\n"
        for (domain, opset), names in sorted(lines.items())
    )


def _join(first: Any, second: Any) -> Any:
    """All types of both: lists by role and place."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return {
            key: _join(first[key], second[key]) if key in first and key in second else first.get(key, second.get(key))
            for key in sorted({**first, **second})
        }
    return [json.loads(text) for text in sorted({json.dumps(item) for item in (*first, *second)})]


def _show(types: Any) -> str:
    return json.dumps(types) if types else ""
