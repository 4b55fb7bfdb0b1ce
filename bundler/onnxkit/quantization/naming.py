"""Resolve node names: quantisers exclude nodes by name, so each needs a unique one, and a named node may be gone.

Users and gates name nodes of the original model. The pre-process fuses nodes, folds constants, and gives new names.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass

from onnx import ModelProto, NodeProto

from bundler.model.errors import StageError
from bundler.onnxkit.quantization.selection import check_nodes
from bundler.onnxkit.structure import iterate_nodes


def name_nodes(model: ModelProto) -> ModelProto:
    """Give every node of the main graph a unique name, in place; equal graphs get equal names."""
    taken = {node.name for node in model.graph.node}
    seen: set[str] = set()
    for place, node in enumerate(model.graph.node):
        if not node.name or node.name in seen:
            stem = f"{node.op_type}_{place}"
            proposals = itertools.chain((stem,), (f"{stem}_{number}" for number in itertools.count()))
            node.name = next(name for name in proposals if name not in taken)
            taken.add(node.name)
        seen.add(node.name)
    return model


@dataclass(frozen=True, slots=True)
class Resolver:
    """Finds the nodes that replace named nodes of the `source`; `prepared` has the nodes by their new names."""

    source: ModelProto
    prepared: Mapping[str, NodeProto]

    def resolve(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names in the prepared model, without duplicates. Raises `StageError` for a name without a node."""
        found = dict.fromkeys(itertools.chain.from_iterable(map(self._resolve, names)))
        return tuple(found)

    def _resolve(self, name: str) -> list[str]:
        known = self._by_name(name)
        if known:
            return known
        check_nodes(self.source, [name])
        nodes = [node for node in iterate_nodes(self.source) if node.name == name]
        heirs = self._successors(nodes)
        if not heirs:
            hint = "remove the name, or set `preprocess` to false"
            details = ("the preparation before quantisation removed it and its successors",)
            raise StageError(f"the excluded node {name!r} no longer exists", details=details, hint=hint)
        return heirs

    def _by_name(self, name: str) -> list[str]:
        """The nodes with that name, or those that were fused with one of that name, and no other nodes with it."""
        nested = {node.name for node in iterate_nodes(self.source)}
        same = [own for own, node in self.prepared.items() if name in (own, node.name)]
        return same or [
            own
            for own, node in self.prepared.items()
            if node.name.startswith(f"{name}/") and node.name not in nested and name in nested
        ]

    def _successors(self, nodes: list[NodeProto]) -> list[str]:
        """The nodes that compute an output of these nodes; else the first remaining ones that read them."""
        waiting, seen = list(nodes), set()
        while waiting:
            outputs = {output for node in waiting for output in node.output if output}
            makers = [own for own, node in self.prepared.items() if outputs.intersection(node.output)]
            makers = makers or [own for own, node in self.prepared.items() if outputs.intersection(node.input)]
            if makers:
                return makers
            seen |= outputs
            waiting = [
                node
                for node in iterate_nodes(self.source)
                if outputs.intersection(node.input) and not seen.issuperset(node.output)
            ]
            fused = [own for node in waiting if node.name for own in self._by_name(node.name)]
            if fused:
                return fused
        return []


def make_resolver(source: ModelProto, prepared: ModelProto) -> Resolver:
    """`prepared` is not changed; subgraphs keep their names, if they have any."""
    named = name_nodes(deepcopy(prepared))
    nodes = {new.name: old for old, new in zip(prepared.graph.node, named.graph.node, strict=True)}
    for node in iterate_nodes(prepared):
        if node.name:
            nodes.setdefault(node.name, node)
    return Resolver(source, nodes)
