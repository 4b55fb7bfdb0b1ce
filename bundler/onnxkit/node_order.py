"""Sort the nodes of a model: a cycle is an error; ONNX Runtime itself also sorts an unsorted graph.

Other tools do not: the ONNX library rejects it, and quantisers that go from node to node fail.
"""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from pathlib import Path

import onnx
from onnx import GraphProto, ModelProto

from bundler.model.errors import ModelError
from bundler.onnxkit.placement_facts import tidy
from bundler.onnxkit.structure import read_names, read_structure, subgraphs

_MAX_SHOWN = 6


def sort_model(model: ModelProto) -> bool:
    """Sort the nodes of all graphs of `model` except functions; whether anything moved. Raises `ModelError`."""
    moved = sort_nodes(model.graph)
    for function in model.functions:
        for node in function.node:
            for inner in subgraphs(node):
                moved = sort_nodes(inner) or moved
    return moved


def write_sorted(source: Path, target: Path, *, external: bool) -> Path:
    """A copy of the model at `source` with sorted nodes and all its weights, at `target`; with `external` these go to
    one file beside it. If the nodes are sorted already, nothing is written and `source` is returned.
    """
    if not sort_model(read_structure(source)):
        return source
    model = onnx.load(source)
    sort_model(model)
    location = target.name + ".data" if external else None
    onnx.save_model(model, str(target), save_as_external_data=external, location=location)
    return target


def sort_nodes(graph: GraphProto) -> bool:
    """Sort the nodes of `graph` and of its subgraphs; whether anything moved. Raises `ModelError` for a cycle."""
    moved = [sort_nodes(inner) for node in graph.node for inner in subgraphs(node)]
    order = _topological_order(graph)
    if order == list(range(len(graph.node))):
        return any(moved)
    nodes = [deepcopy(graph.node[index]) for index in order]
    del graph.node[:]
    graph.node.extend(nodes)
    return True


def _topological_order(graph: GraphProto) -> list[int]:
    """Indices of the nodes in an order in which each follows its inputs; the file's own order if possible."""
    producer = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    needs = [{producer[name] for name in read_names(node) if name in producer} for node in graph.node]
    if all(max(sources, default=-1) < index for index, sources in enumerate(needs)):
        return list(range(len(graph.node)))
    readers: list[list[int]] = [[] for _ in graph.node]
    for index, sources in enumerate(needs):
        for source in sources:
            readers[source].append(index)
    waiting = [len(sources) for sources in needs]
    ready = deque(index for index, count in enumerate(waiting) if not count)
    order = []
    while ready:
        index = ready.popleft()
        order.append(index)
        for reader in readers[index]:
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    if len(order) < len(graph.node):
        raise _cycle(graph, set(range(len(graph.node))) - set(order))
    return order


def _cycle(graph: GraphProto, stuck: set[int]) -> ModelError:
    nodes = [graph.node[index] for index in sorted(stuck)[:_MAX_SHOWN]]
    details = tuple(tidy(f"{node.op_type} computes {', '.join(map(repr, node.output))}") for node in nodes)
    hint = "these nodes depend on each other: export the model again without manual edits of the graph"
    return ModelError("the model's graph has a cycle, so its nodes cannot be ordered", details=details, hint=hint)
