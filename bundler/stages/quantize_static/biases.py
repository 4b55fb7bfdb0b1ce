"""Biases of shape `[1, N]`, which the pre-process creates from an addition after a matrix product."""

from __future__ import annotations

from onnx import GraphProto

_BIAS = 2
"""The input of Gemm that is its bias."""
_ROW = 2


def flatten_biases(graph: GraphProto) -> int:
    """Reshape Gemm biases of shape `[1, N]` to `[N]`, which is equivalent, in place; returns how many.

    Per channel, the reference writes one scale for each entry of a bias's first axis: only one for a row, and no
    runtime loads the result (onnxruntime 1.31.1).
    """
    others = {
        name for node in graph.node for place, name in enumerate(node.input) if (node.op_type, place) != ("Gemm", _BIAS)
    }
    others |= {value.name for values in (graph.input, graph.output) for value in values}
    biases = {node.input[_BIAS] for node in graph.node if node.op_type == "Gemm" and len(node.input) > _BIAS} - others
    rows = [t for t in graph.initializer if t.name in biases and len(t.dims) == _ROW and t.dims[0] == 1]
    for tensor in rows:
        del tensor.dims[0]
    flat = {tensor.name for tensor in rows}
    for value in [value for value in graph.value_info if value.name in flat]:
        graph.value_info.remove(value)
    return len(rows)
