"""Which integer outputs are rounded numbers (boxes, sizes, pixels), and which are labels, places or ids.

Of a label the next integer is another answer; of a rounded number it is the same within a step.
"""

from __future__ import annotations

from typing import Final

from onnx import ModelProto, NodeProto, TensorProto

from bundler.onnxkit.structure import iterate_nodes

_PASSING: Final = frozenset(
    {
        "Reshape",
        "Squeeze",
        "Unsqueeze",
        "Identity",
        "Flatten",
        "Transpose",
        "Slice",
        "Concat",
        "Clip",
        "Gather",
        "Expand",
    }
)
"""Operators whose output holds the values of their first input (all inputs, of a concatenation)."""

_ROUNDING: Final = frozenset({"QuantizeLinear", "DynamicQuantizeLinear"})
_INTEGERS: Final = frozenset(
    {TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64}
    | {TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64}
)
_FRACTIONAL: Final = frozenset({"Round", "Floor", "Ceil", "Sigmoid", "Softmax", "Tanh", "Exp", "Sqrt"})
"""Operators of floating-point numbers alone."""
_ARITHMETIC: Final = frozenset({"Mul", "Add", "Sub", "Div", "Relu", "Pow"})
"""Operators of numbers of any type: what they are given decides."""
_PLACES: Final = frozenset(
    {"ArgMax", "ArgMin", "TopK", "NonZero", "Shape", "Size", "NonMaxSuppression", "Range", "OneHot"}
)
"""Operators that answer with places and counts: arithmetic on those makes labels and ids."""
_MIXING: Final = frozenset(
    {"Cast", "Split", "Sum", "ReduceSum", "MatMul", "Gemm", "Where", "Min", "Max", "Neg", "Abs", "Mod"}
)
"""What else lies between numbers that are whole and the ids that are made of them."""
_STEPS: Final = frozenset({"Round", "Floor", "Ceil", "Sign"})
"""What is whole already: arithmetic on that makes ids, as a codebook's, of which one step is another entry."""


def find_quantities(model: ModelProto) -> tuple[str, ...]:
    """Names of the outputs whose integers are rounded numbers."""
    producers = {name: node for node in iterate_nodes(model) for name in node.output if name}
    return tuple(item.name for item in model.graph.output if _is_rounded(item.name, producers))


def _is_rounded(name: str, producers: dict[str, NodeProto]) -> bool:
    pending, seen = [name], {name}
    while pending:
        node = producers.get(pending.pop())
        if node is None:
            continue
        if node.op_type in _ROUNDING or (node.op_type == "Cast" and _rounds(node, producers)):
            return True
        if node.op_type in _PASSING or node.op_type == "Cast":
            names = node.input if node.op_type == "Concat" else node.input[:1]
            fresh = [one for one in names if one not in seen]
            seen.update(fresh)
            pending.extend(fresh)
    return False


def _rounds(node: NodeProto, producers: dict[str, NodeProto]) -> bool:
    """Whether the cast makes integers of what arithmetic on numbers with a fraction gave."""
    to = next((attribute.i for attribute in node.attribute if attribute.name == "to"), 0)
    source = producers.get(node.input[0])
    if to not in _INTEGERS or source is None:
        return False
    return source.op_type in _FRACTIONAL or (source.op_type in _ARITHMETIC and not _counts(source, producers))


def _counts(node: NodeProto, producers: dict[str, NodeProto]) -> bool:
    """Whether arithmetic starts from places, counts or numbers that are whole already."""
    pending, seen = [node], {node.output[0]}
    while pending:
        for name in pending.pop().input:
            before = producers.get(name)
            if before is None or before.output[0] in seen:
                continue
            if before.op_type in _PLACES | _STEPS:
                return True
            if before.op_type in _ARITHMETIC | _PASSING | _MIXING:
                seen.add(before.output[0])
                pending.append(before)
    return False
