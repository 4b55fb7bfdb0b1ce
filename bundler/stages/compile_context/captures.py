"""Copy weights of the main graph into the subgraphs that read them.

ONNX Runtime rewrites a compiled model without the weights of the main graph that only subgraphs read: it counts what
the remaining nodes read, but not the outer values of their subgraphs. It then rejects its own model ("nodes in a graph
must be topologically sorted", 1.31).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from bundler.onnxkit.structure import subgraphs


def captures_weights(model: ModelProto) -> bool:
    """Whether a subgraph reads a weight of the main graph."""
    names = {tensor.name for tensor in model.graph.initializer}
    return any(not names.isdisjoint(_captured_values(inner)) for inner in _inner_graphs(model))


def write_with_own_weights(source: Path, target: Path) -> None:
    """A copy of the model at `source` in which each subgraph contains the weights that it reads. Weights of two
    subgraphs are duplicated, unless they are external data. External files must lie beside `target` as beside `source`.
    """
    model = onnx.load(source, load_external_data=False)
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    used = {name for node in model.graph.node for name in node.input} | {value.name for value in model.graph.output}
    used |= {value.name for value in model.graph.input}
    taken: set[str] = set()
    for number, inner in enumerate(_inner_graphs(model)):
        names = {name: f"{name}.bundler.{number}" for name in sorted(tensors.keys() & _captured_values(inner))}
        inner.initializer.extend(_copy_tensor(tensors[old], new) for old, new in names.items())
        _rename(inner, names)
        taken |= names.keys()
    for index in reversed(range(len(model.graph.initializer))):
        if model.graph.initializer[index].name in taken - used:
            del model.graph.initializer[index]
    target.write_bytes(model.SerializeToString(deterministic=True))


def _inner_graphs(model: ModelProto) -> list[GraphProto]:
    """The subgraphs of the main graph's nodes; those nested in them read from these."""
    return [inner for node in model.graph.node for inner in subgraphs(node)]


def _captured_values(graph: GraphProto) -> set[str]:
    read = {name for node in graph.node for name in _reads(node)} | {value.name for value in graph.output}
    return read - _defined_values(graph)


def _reads(node: NodeProto) -> set[str]:
    return set(node.input).union(*(_captured_values(inner) for inner in subgraphs(node)))


def _defined_values(graph: GraphProto) -> set[str]:
    made = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    made |= {sparse.values.name for sparse in graph.sparse_initializer}
    return made | {name for node in graph.node for name in node.output}


def _copy_tensor(tensor: TensorProto, name: str) -> TensorProto:
    copy = TensorProto()
    copy.CopyFrom(tensor)
    copy.name = name
    return copy


def _rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Replace names in everything that `graph` reads."""
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        for inner in subgraphs(node):
            _rename(inner, {old: new for old, new in names.items() if old not in _defined_values(inner)})
    for value in graph.output:
        value.name = names.get(value.name, value.name)
