"""Facts about the nodes that are assigned to a provider, and those that are not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from onnx import ModelProto, NodeProto

from bundler.onnxkit.structure import iterate_graphs, qualified_name

MAX_LISTED: Final = 50
"""Maximum number of unassigned nodes in the list."""
_UNCOUNTED: Final = frozenset({"QuantizeLinear", "DequantizeLinear", "Constant"})
"""Operators that describe the storage of numbers: providers fold them into their neighbours."""
_MAX_LENGTH: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftNode:
    """A node that is not assigned to the provider: its name (or its first output's), its operator, and the reason."""

    name: str
    operator: str
    reason: str

    def describe(self) -> str:
        """One line for people."""
        return f"{self.operator} {self.name!r}: {self.reason}"


def counted_nodes(model: ModelProto, *, nested: bool = False) -> tuple[NodeProto, ...]:
    """The nodes that count in a placement: of the main graph, and with `nested` of branches and loop bodies, too."""
    graphs = iterate_graphs(model) if nested else (model.graph,)
    return tuple(node for graph in graphs for node in graph.node if node.op_type not in _UNCOUNTED)


def left_node(node: NodeProto, reason: str) -> LeftNode:
    """An unassigned node of the model, with the reason."""
    name = node.name or next((output for output in node.output if output), "")
    return LeftNode(name=tidy(name), operator=tidy(qualified_name(node)), reason=tidy(reason))


def count_placement(provider: str, total: int, left: Sequence[LeftNode], inside: int = 0) -> dict[str, Any]:
    """The facts that every placement has. `total` counts all nodes, `inside` those in subgraphs of unassigned ones."""
    assigned = total - len(left) - inside
    return {
        "provider": provider,
        "assigned": assigned,
        "left": len(left) + inside,
        "share": round(assigned / total, 6) if total else 0.0,
        "left_nodes": [asdict(node) for node in left[:MAX_LISTED]],
    }


def list_left(left: Sequence[LeftNode], most: int = 20) -> tuple[str, ...]:
    """Lines for an error: the unassigned nodes, and the number of further ones."""
    return limit_lines([node.describe() for node in left], most)


def limit_lines(lines: Sequence[str], most: int, unit: str = "") -> tuple[str, ...]:
    """The first lines, and the number of further ones."""
    rest = len(lines) - most
    return (*lines[:most], *((f"and {rest} more{unit}",) if rest > 0 else ()))


def tidy(text: str, longest: int = _MAX_LENGTH) -> str:
    """A text from a model or a tool as one short line."""
    return "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))[:longest]


def tidy_lines(texts: Iterable[str], most: int = 12) -> tuple[str, ...]:
    """Lines of a tool's log without duplicates, at most `most`."""
    return limit_lines(tuple(dict.fromkeys(line for text in texts if (line := tidy(text)))), most, " lines")
