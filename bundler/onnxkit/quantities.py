"""Find the integer outputs that are rounded numbers (boxes, sizes, pixels), and not labels, indices or ids.

A label off by one is wrong; a rounded number off by one is equal within a rounding step.
"""

from __future__ import annotations

from typing import Final

from onnx import ModelProto, NodeProto, TensorProto

from bundler.onnxkit.structure import integer_attribute, iterate_nodes

_PASSING: Final = frozenset(
    {"Reshape", "Squeeze", "Unsqueeze", "Identity", "Flatten", "Transpose", "Slice", "Concat"}
    | {"Clip", "Gather", "Expand"}
)
"""Operators whose output holds the values of their first input (for a concatenation, of all inputs)."""
_LIMITING: Final = frozenset({"Min", "Max"})
"""Older exporters write a limit as two of these, each with a constant."""
_ROUNDING: Final = frozenset({"QuantizeLinear", "DynamicQuantizeLinear"})
_INTEGERS: Final = frozenset(
    {TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64}
    | {TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64}
)
_FRACTIONAL: Final = frozenset({"Round", "Floor", "Ceil", "Sigmoid", "Softmax", "Tanh", "Exp", "Sqrt"})
"""Operators for floating-point numbers only."""
_ARITHMETIC: Final = frozenset({"Mul", "Add", "Sub", "Div", "Relu", "Pow"})
"""Operators for numbers of any type: the type of their inputs decides."""
_PLACES: Final = frozenset(
    {"ArgMax", "ArgMin", "TopK", "NonZero", "Shape", "Size", "NonMaxSuppression", "Range", "OneHot"}
)
"""Operators whose outputs are indices and counts: arithmetic on those computes labels and ids."""
_MIXING: Final = frozenset(
    {"Cast", "Split", "Sum", "ReduceSum", "MatMul", "Gemm", "Where", "Min", "Max", "Neg", "Abs", "Mod"}
)
"""Other operators between integers and the ids that are computed from them."""
_STEPS: Final = frozenset({"Round", "Floor", "Ceil", "Sign"})
"""Operators whose outputs are integers already: arithmetic on them computes ids, as of a codebook."""


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
    """Whether the cast rounds the result of arithmetic on fractional numbers."""
    source = _find_source(node, producers)
    if integer_attribute(node, "to") not in _INTEGERS or source is None:
        return False
    return source.op_type in _FRACTIONAL or (source.op_type in _ARITHMETIC and not _counts(source, producers))


def _find_source(node: NodeProto, producers: dict[str, NodeProto]) -> NodeProto | None:
    """What computes the cast's numbers, before they are limited (`clamp(0, 255)` of an image), moved or cut out."""
    source, seen = producers.get(node.input[0]), {node.input[0]}
    while source is not None and source.op_type in _PASSING | _LIMITING:
        names = source.input if source.op_type in _LIMITING else source.input[:1]
        known = (name for name in names if name in producers and producers[name].op_type != "Constant")
        name = next(known, "")
        if name in seen:
            return None
        seen.add(name)
        source = producers.get(name)
    return source


def _counts(node: NodeProto, producers: dict[str, NodeProto]) -> bool:
    """Whether arithmetic starts from indices, counts or numbers that are integers already."""
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
