"""The order of nodes: a cycle is an error; an unsorted graph is only untidy, and ONNX Runtime sorts it by itself.

Other tools do not: the ONNX library calls it invalid, and quantisers that go from node to node lose their way.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

import onnx
from onnx import GraphProto, ModelProto, NodeProto

from bundler.model.errors import ModelError
from bundler.onnxkit.placement_facts import tidy
from bundler.onnxkit.structure import read_structure, subgraphs

_SHOWN = 6


def sort_model(model: ModelProto) -> bool:
    """Sort the nodes of all graphs of `model` but a function's own; whether anything moved. Raises `ModelError`."""
    moved = sort_nodes(model.graph)
    for function in model.functions:
        for node in function.node:
            for inner in subgraphs(node):
                moved = sort_nodes(inner) or moved
    return moved


def write_sorted(source: Path, target: Path, *, external: bool) -> Path:
    """A copy of the model at `source` with sorted nodes and all its weights, at `target`; with `external` these go to
    one file beside it. Where nothing is out of order nothing is written, and the answer is `source`.
    """
    if not sort_model(read_structure(source)):
        return source
    model = onnx.load(source)
    sort_model(model)
    location = target.name + ".data" if external else None
    onnx.save_model(model, str(target), save_as_external_data=external, location=location)
    return target


def sort_nodes(graph: GraphProto) -> bool:
    """Sort the nodes of `graph` and of the graphs in it; whether anything moved. Raises `ModelError` for a cycle."""
    moved = [sort_nodes(inner) for node in graph.node for inner in subgraphs(node)]
    order = _topological_order(graph)
    if order == list(range(len(graph.node))):
        return any(moved)
    nodes = [graph.node[index] for index in order]
    copies = []
    for node in nodes:
        copy = NodeProto()
        copy.CopyFrom(node)
        copies.append(copy)
    del graph.node[:]
    graph.node.extend(copies)
    return True


def _topological_order(graph: GraphProto) -> list[int]:
    """Indices of the nodes so that each stands behind what it reads; the file's own order where that will do."""
    producer = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    needs = [{producer[name] for name in _reads(node) if name in producer} for node in graph.node]
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


def _reads(node: NodeProto) -> set[str]:
    """Every value that a node reads, those that its subgraphs take from outside included."""
    names = {name for name in node.input if name}
    for graph in subgraphs(node):
        for inner in graph.node:
            names |= _reads(inner)
        names |= {output.name for output in graph.output}
        own = {name for inner in graph.node for name in inner.output}
        own |= {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        names -= own - {name for name in node.input if name}
    return names


def _cycle(graph: GraphProto, stuck: set[int]) -> ModelError:
    nodes = [graph.node[index] for index in sorted(stuck)[:_SHOWN]]
    details = tuple(tidy(f"{node.op_type} makes {', '.join(map(repr, node.output))}") for node in nodes)
    return ModelError(
        "the model's graph has a cycle, so no order of its nodes can run",
        details=details,
        hint="these nodes wait for each other: export the model again, without editing the graph by hand",
    )
