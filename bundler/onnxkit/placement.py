"""Find the nodes of a model that its compiled form does not contain, and explain them as far as possible."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import onnx
from onnx import ModelProto, NodeProto, TypeProto

from bundler.onnxkit.elements import element_of_onnx
from bundler.onnxkit.inference import infer_shapes
from bundler.onnxkit.placement_facts import LeftNode, counted_nodes, left_node
from bundler.onnxkit.structure import iterate_graphs, qualified_name
from bundler.onnxkit.value_flow import read_flow

CONTEXT: Final = "com.microsoft.EPContext"
"""The operator of a part that a provider compiled."""
_COPIED: Final = re.compile(r"_token_\d+$")
"""The suffix that the runtime appends to the name of a node that it copies into another layout."""


def left_behind(before: ModelProto, after: ModelProto, *, nested: bool = False) -> list[NodeProto]:
    """The counted nodes of `before` that `after`, the compiled model, still has outside the compiled parts: those of
    the main graph, and with `nested` of subgraphs, too.

    The runtime may rename the outputs of such a node when it changes layouts, so nodes are found by name, then by
    output, and unnamed ones by their operator. Nodes that it inserted are ignored.
    """
    kept = [node for node in counted_nodes(after, nested=nested) if qualified_name(node) != CONTEXT]
    waiting = _Nodes(counted_nodes(before, nested=nested))
    return [node for node in (waiting.take(other) for other in kept) if node is not None]


class _Nodes:
    """Nodes of the original model, each found once."""

    def __init__(self, nodes: Iterable[NodeProto]) -> None:
        self._by_name: dict[tuple[str, str], list[NodeProto]] = defaultdict(list)
        self._by_output: dict[tuple[str, str], NodeProto] = {}
        self._taken: set[int] = set()
        for node in nodes:
            self._by_name[node.op_type, node.name].append(node)
            self._by_output.update({(node.op_type, name): node for name in node.output if name})

    def take(self, node: NodeProto) -> NodeProto | None:
        """The original of `node`, unless it was found before."""
        name = _COPIED.sub("", node.name)
        outputs = (self._by_output.get((node.op_type, output)) for output in node.output)
        names = ((node.op_type, node.name), (node.op_type, name)) if node.name else ()
        named = (item for key in names for item in self._by_name.get(key, ()))
        nameless = iter(() if node.name else self._by_name.get((node.op_type, ""), ()))
        for item in (*named, *outputs, *nameless):
            if item is not None and id(item) not in self._taken:
                self._taken.add(id(item))
                return item
        return None


_LOOPS: Final = frozenset({"Loop", "Scan"})


def explain_left(model: ModelProto, left: Sequence[NodeProto]) -> list[LeftNode]:
    """The reasons as far as they can be derived: providers give none. `left` are nodes of `model`."""
    if not left:
        return []
    types = _types(model)
    away = {id(node) for node in left}
    taken = [node for node in counted_nodes(model) if id(node) not in away]
    known = {node.op_type for node in taken}
    elements: dict[str, set[str]] = defaultdict(set)
    for node in taken:
        elements[node.op_type] |= _elements(node, types)
    why = explain_conditions(model)
    return [
        left_node(node, why.get(next(iter(node.output), ""), "") or _reason(node, types, known, elements))
        for node in left
    ]


def explain_conditions(model: ModelProto) -> dict[str, str]:
    """By the first outputs of the main graph's conditions (`If`), which inputs choose the branch, and what to do."""
    flow, outputs = read_flow(model), {info.name for info in model.graph.output}
    found = {}
    for node in model.graph.node:
        inputs = flow.sources(node.input[0]) if qualified_name(node) == "If" and node.input and node.output else ()
        if inputs:
            given = [name for name in node.output if name in outputs]
            branch = f"the branch that gives {_quote(given)}" if given else "its branch"
            found[node.output[0]] = (
                f"{branch} depends on the input {_quote(inputs)}; export the model without this choice"
            )
    return found


def _quote(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def summarize_left(left: Sequence[LeftNode]) -> tuple[str, ...]:
    """Lines for an error: the number of nodes by operator and reason."""
    counts = Counter((node.operator, node.reason) for node in left)
    return tuple(f"{operator} ({count}): {reason}" for (operator, reason), count in counts.most_common(8))


def _reason(
    node: NodeProto, types: Mapping[str, TypeProto.Tensor], known: set[str], elements: Mapping[str, set[str]]
) -> str:
    if node.op_type in _LOOPS and node.op_type not in known:  # its sizes are not why, and cannot be fixed
        return "operator not supported"
    if any(_is_dynamic(types[name]) for name in (*node.input, *node.output) if name in types):
        return "dynamic shape"
    if node.op_type not in known:
        return "operator not supported"
    strange = sorted(_elements(node, types) - elements[node.op_type])
    if strange:
        return f"type not supported: {', '.join(strange)}"
    return "not with these attributes, ranks or neighbours"


def _elements(node: NodeProto, types: Mapping[str, TypeProto.Tensor]) -> set[str]:
    found = (types[name].elem_type for name in (*node.input, *node.output) if name in types)
    return {element_of_onnx(element).name for element in found if element}


def _is_dynamic(tensor: TypeProto.Tensor) -> bool:
    return tensor.HasField("shape") and any(not dim.HasField("dim_value") for dim in tensor.shape.dim)


def _types(model: ModelProto) -> dict[str, TypeProto.Tensor]:
    try:
        inferred = infer_shapes(model)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        inferred = model
    graphs = iterate_graphs(inferred)
    infos = [info for graph in graphs for info in (*graph.input, *graph.value_info, *graph.output)]
    return {info.name: info.type.tensor_type for info in infos if info.type.HasField("tensor_type")}
