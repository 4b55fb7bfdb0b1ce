"""Lay the weights of subgraphs out so that ONNX Runtime can rewrite a model whose subgraphs stay uncompiled.

It writes a compiled model without the weights of the main graph that only subgraphs read: it counts what the remaining
nodes read, but not the outer values of their subgraphs. It then rejects its own model ("nodes in a graph must be
topologically sorted"). Nor can it write a subgraph's weights of more than 127 bytes that it holds in memory
("references an ORT in-memory address marker"); weights in a file are written as they were (1.31).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import onnx
from onnx import GraphProto, ModelProto

from bundler.onnxkit.canonical.tensor_data import DataFile, DataFolders, place_tensor
from bundler.onnxkit.structure import (
    captured_names,
    iterate_graphs,
    keep_only,
    lift_constants,
    rename_captures,
    subgraphs,
)

_FILE: Final = ".subgraphs"
"""Suffix of the file with the weights of subgraphs."""
_IN_MEMORY: Final = 128
"""Size in bytes from which the runtime holds a weight outside the model's message."""


def has_subgraphs(model: ModelProto) -> bool:
    """Whether a node of the main graph has subgraphs: branches, a loop's body."""
    return any(True for _ in _inner_graphs(model))


def write_with_own_weights(source: Path, target: Path) -> None:
    """A copy of the model at `source` in which each subgraph has the weights that it reads, in a file beside `target`.
    Weights that two subgraphs read are stored once. External files must lie beside `target` as beside `source`.
    """
    model = onnx.load(source, load_external_data=False)
    _copy_captured(model)
    with contextlib.closing(DataFile(target.with_name(target.name + _FILE))) as out:
        for graph in list(iterate_graphs(model))[1:]:
            lift_constants(graph)
            for tensor in graph.initializer:
                place_tensor(tensor, DataFolders(source, source.parent), out, _IN_MEMORY)
    target.write_bytes(model.SerializeToString(deterministic=True))


def _copy_captured(model: ModelProto) -> None:
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


def _inner_graphs(model: ModelProto) -> Iterator[GraphProto]:
    """The subgraphs of the main graph's nodes; those nested in them read from these."""
    return (inner for node in model.graph.node for inner in subgraphs(node))
