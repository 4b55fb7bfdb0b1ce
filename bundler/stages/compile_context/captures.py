"""Copy weights of the main graph into the subgraphs that read them.

ONNX Runtime rewrites a compiled model without the weights of the main graph that only subgraphs read: it counts what
the remaining nodes read, but not the outer values of their subgraphs. It then rejects its own model ("nodes in a graph
must be topologically sorted", 1.31).
"""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import GraphProto, ModelProto

from bundler.onnxkit.structure import captured_names, keep_only, rename_captures, subgraphs


def captures_weights(model: ModelProto) -> bool:
    """Whether a subgraph reads a weight of the main graph."""
    names = {tensor.name for tensor in model.graph.initializer}
    return any(not names.isdisjoint(captured_names(inner)) for inner in _inner_graphs(model))


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
        names = {name: f"{name}.bundler.{number}" for name in sorted(tensors.keys() & captured_names(inner))}
        for old, new in names.items():
            inner.initializer.append(tensors[old])
            inner.initializer[-1].name = new
        rename_captures(inner, names)
        taken |= names.keys()
    keep_only(model.graph.initializer, lambda tensor: tensor.name not in taken - used)
    target.write_bytes(model.SerializeToString(deterministic=True))


def _inner_graphs(model: ModelProto) -> list[GraphProto]:
    """The subgraphs of the main graph's nodes; those nested in them read from these."""
    return [inner for node in model.graph.node for inner in subgraphs(node)]
