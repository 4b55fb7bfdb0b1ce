"""Count the nodes of nested functions before anything expands them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from onnx import FunctionProto, ModelProto, NodeProto

from bundler.model.errors import ModelError
from bundler.onnxkit.structure import subgraphs

MAX_EXPANDED_NODES: Final = 30_000
"""ONNX Runtime expands functions when it loads a model, in more than linear time: nested functions with 8,000 nodes
took 3 s, 16,000 took 20 s and 33,000 took 56 s, at each load. None of 121 models of public packages has functions.
"""
MAX_CALL_DEPTH: Final = 100
"""Exporters nest one level for each module: a dozen (of 121 models of public packages, none has functions). Libraries
process them recursively.
"""
_BILLION: Final = 10**9
_Key = tuple[str, str, str]


def check_functions(model: ModelProto) -> None:
    """Raise `ModelError` for functions that expand to too many nodes, or are nested too deep."""
    functions = {(item.domain, item.name, item.overload): item for item in model.functions}
    expanded = _Count(functions).nodes(model.graph.node) if functions else 0
    if expanded <= max(MAX_EXPANDED_NODES, _count_plain(model.graph.node)):
        return
    shown = f"{expanded:,}" if expanded < _BILLION else "more than a billion"
    raise ModelError(
        f"the model's {len(functions)} functions call each other and expand to {shown} nodes",
        details=(f"at most {MAX_EXPANDED_NODES:,} nodes inside functions are expanded",),
        hint=_HINT,
    )


_HINT: Final = "if the model really is that large, inline its functions first, with onnx.inliner.inline_local_functions"


class _Count:
    """Counts each function once, however often it is called."""

    def __init__(self, functions: Mapping[_Key, FunctionProto]) -> None:
        self._functions = functions
        self._known: dict[_Key, int] = {}
        self._depth = 0

    def nodes(self, nodes: Iterable[NodeProto]) -> int:
        return sum(self._one(node) for node in nodes)

    def _one(self, node: NodeProto) -> int:
        inner = sum(self.nodes(graph.node) for graph in subgraphs(node))
        return inner + self._called((node.domain, node.op_type, node.overload))

    def _called(self, key: _Key) -> int:
        if key not in self._functions:
            return 1
        if key not in self._known:
            self._known[key] = 1  # ONNX's own checker rejects recursion; it counts once here
            self._depth += 1
            if self._depth > MAX_CALL_DEPTH:
                message = f"the model's functions call each other more than {MAX_CALL_DEPTH} levels deep"
                raise ModelError(message, hint=_HINT)
            self._known[key] = self.nodes(self._functions[key].node)
            self._depth -= 1
        return self._known[key]


def _count_plain(nodes: Iterable[NodeProto]) -> int:
    return sum(1 + sum(_count_plain(graph.node) for graph in subgraphs(node)) for node in nodes)
