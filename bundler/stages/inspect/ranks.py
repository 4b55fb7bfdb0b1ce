"""Reject values with more dimensions than any library supports, before one of them computes these."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from onnx import ModelProto, NodeProto

from bundler.model.errors import ModelError
from bundler.onnxkit.placement_facts import tidy
from bundler.onnxkit.structure import constant_tensor, iterate_graphs, iterate_nodes, iterate_tensors

MAX_RANK: Final = 64
"""NumPy, with which all outputs are compared, supports no more. The largest of 121 models of public packages has 5."""
_SHAPES: Final[Mapping[str, int]] = {"Reshape": 1, "Expand": 1, "Tile": 1, "Unsqueeze": 1, "ConstantOfShape": 0}
"""The input of an operator that has one number for each dimension of its output."""
_ATTRIBUTES: Final = frozenset({"shape", "axes", "perm", "repeats"})


def check_ranks(model: ModelProto) -> None:
    """Raise `ModelError` for a declared value, or a constant shape, of too many dimensions."""
    for name, rank in _ranks(model):
        if rank > MAX_RANK:
            raise ModelError(
                f"the value {tidy(repr(name))} has {rank:,} dimensions, and at most {MAX_RANK} are supported",
                hint="export the model again with fewer dimensions",
            )


def _ranks(model: ModelProto) -> Iterator[tuple[str, int]]:
    counts = {}
    for tensor in iterate_tensors(model):
        yield tensor.name, len(tensor.dims)
        counts[tensor.name] = math.prod(tensor.dims)
    for graph in iterate_graphs(model):
        for info in (*graph.input, *graph.value_info, *graph.output):
            yield info.name, len(info.type.tensor_type.shape.dim)
    nodes = list(iterate_nodes(model))
    counts.update((node.output[0], _count_constant(node)) for node in nodes if node.op_type == "Constant")
    for node in nodes:
        name = next(iter(node.output), "")
        yield from ((name, len(item.ints)) for item in node.attribute if item.name in _ATTRIBUTES)
        place = _SHAPES.get(node.op_type)
        if place is not None and len(node.input) > place:
            yield name, counts.get(node.input[place], 0)


def _count_constant(node: NodeProto) -> int:
    tensor = constant_tensor(node)
    return math.prod(tensor.dims) if tensor is not None else max((len(item.ints) for item in node.attribute), default=0)
