"""Casts from uint8 to floating point, which a compiler may take for casts of truth values.

onnxruntime-qnn 2.6.0 has one type for ONNX's bool and uint8: its Cast gives 1 for every byte but zero, in the contexts
that it compiles and in its emulator alike. Through int32 the numbers stay.
"""

from __future__ import annotations

from typing import Final

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

_FLOATS: Final = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16})
_PASSING: Final = frozenset(
    {"Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Gather", "Concat", "Expand"}
)
"""Operators whose output has the type of their first input."""


def widen_byte_casts(model: ModelProto) -> int:
    """Let each cast of the main graph from uint8 to floating point go through int32; returns how many there are."""
    casts = _find_casts(model.graph)
    nodes = list(model.graph.node)
    names = {name for node in nodes for name in node.output}
    for number, cast in enumerate(casts):
        wide = f"{cast.input[0]}.int32.{number}"
        while wide in names:
            wide += "_"
        place = nodes.index(cast)
        nodes.insert(place, helper.make_node("Cast", [cast.input[0]], [wide], name=wide, to=TensorProto.INT32))
        cast.input[0] = wide
    if casts:
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return len(casts)


def _find_casts(graph: GraphProto) -> list[NodeProto]:
    known = (*graph.input, *graph.value_info)
    narrow = {value.name for value in known if value.type.tensor_type.elem_type == TensorProto.UINT8}
    narrow |= {tensor.name for tensor in graph.initializer if tensor.data_type == TensorProto.UINT8}
    found = []
    for node in graph.node:
        if not node.input or node.input[0] not in narrow:
            continue
        if node.op_type in _PASSING:
            narrow.update(node.output)
        elif node.op_type == "Cast" and any(item.name == "to" and item.i in _FLOATS for item in node.attribute):
            found.append(node)
    return found
