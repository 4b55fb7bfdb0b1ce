"""How many nodes of a graph are assigned to a provider, from the facts of steps that compile or estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bundler.model.open_sizes import describe_example, describe_gain


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """The estimated assignment with all sizes fixed; `options` are the command-line words that fix them."""

    assigned: int
    total: int
    options: tuple[str, ...]

    def describe(self, project: str = "") -> str:
        """A clause for a message; `project` is the name of the project file, if there is one."""
        return f"{describe_gain(self.assigned, self.total)}, {describe_example(self.options, project)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementFacts:
    """The checked facts of one step that compiled a model or counted the nodes assigned to a provider. `estimated_by`
    is the runtime whose table of operators an estimate is from, `onnxruntime 1.24.2`.
    """

    provider: str
    assigned: int
    left: int
    left_nodes: Sequence[Mapping[str, Any]] = ()
    devices: tuple[str, ...] = ()
    sdk: str = ""
    contexts: int = 0
    size: int = 0
    estimated: bool = False
    estimated_by: str = ""
    gain: Gain | None = None

    @property
    def share(self) -> float:
        """The share of nodes assigned to the provider, from 0 to 1; 1 for a graph without nodes."""
        total = self.assigned + self.left
        return self.assigned / total if total else 1.0


def read_placement(facts: Mapping[str, Any]) -> PlacementFacts | None:
    """The placement in a step's facts; None where there is none."""
    provider, assigned, left = facts.get("provider"), facts.get("assigned"), facts.get("left")
    if not isinstance(provider, str) or not isinstance(assigned, int) or not isinstance(left, int):
        return None
    return PlacementFacts(
        provider=provider,
        assigned=max(0, assigned),
        left=max(0, left),
        left_nodes=[row for row in _items(facts.get("left_nodes")) if isinstance(row, Mapping)],
        devices=tuple(str(name) for name in _items(facts.get("devices"))),
        sdk=str(facts.get("sdk") or ""),
        contexts=_count(facts.get("contexts")),
        size=_count(facts.get("bytes")),
        estimated=bool(facts.get("estimated")),
        estimated_by=str(facts.get("estimated_by") or ""),
        gain=_read_gain(facts.get("fixed")),
    )


def _read_gain(fixed: Any) -> Gain | None:
    if not isinstance(fixed, Mapping):
        return None
    assigned, left = fixed.get("assigned"), fixed.get("left")
    if not isinstance(assigned, int) or not isinstance(left, int):
        return None
    return Gain(assigned=assigned, total=assigned + left, options=tuple(map(str, _items(fixed.get("options")))))


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
