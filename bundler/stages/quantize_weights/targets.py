"""Find the nodes whose weights can be quantised, and bring them into the form that the reference recognises."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from bundler.model.errors import StageError
from bundler.onnxkit.linked_models import LinkedModel
from bundler.onnxkit.structure import (
    integer_attribute,
    iterate_graphs,
    iterate_nodes,
    lift_constants,
    subgraphs,
    tensor_bytes,
)
from bundler.stages.quantize_weights.spec import Options

_MATRIX: Final = 2
_MAX_SHOWN: Final = 80
WEIGHT_INPUT: Final[Mapping[str, int]] = {"MatMul": 1, "Gemm": 1, "Gather": 0}
"""ONNX operators whose weights the reference quantises, and the input that holds the weight."""
_TYPES: Final = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16})


@dataclass(slots=True)
class Targets:
    """Names of the nodes to quantise, each with its operator in the input model."""

    operators: dict[str, str] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)
    """Counts of other nodes by reason."""
    weights: dict[str, int] = field(default_factory=dict)
    """Bytes of each weight by its name; a shared one counts once."""


def prepare_targets(linked: LinkedModel, options: Options) -> Targets:
    """Lift constant weights to initializers, split Gemm where requested, and name every node. Raises `StageError`."""
    _check_names(linked, options)
    excluded = {id(node): node for node in iterate_nodes(linked.model) if node.name in options.exclude_nodes}
    # The reference finds weights among initializers only, and exporters also write them as Constant nodes.
    wanted = {weight for node in iterate_nodes(linked.model) if (weight := _weight_name(node, options))}
    for graph in iterate_graphs(linked.model):
        lift_constants(graph, wanted)
    for number, node in enumerate(list(iterate_nodes(linked.model))):
        node.name = f"n{number}"
    finder = _Finder(linked, options, {node.name for node in excluded.values()})
    finder.visit(linked.model.graph, ())
    _check_room(linked, finder.found)
    return finder.found


def _check_room(linked: LinkedModel, found: Targets) -> None:
    """The reference names its results after the weight, without checking that the name is free."""
    taken = {tensor.name for graph in iterate_graphs(linked.model) for tensor in graph.initializer}
    taken |= {name for node in iterate_nodes(linked.model) for name in node.output}
    made = [name for name in taken if re.search(r"_(Q\d(G\d+)?|scales?|zero_points|zp)$", name)]
    for weight in found.weights:
        clash = next((name for name in made if name != weight and name.startswith(f"{weight}_")), "")
        if clash:
            raise StageError(f"the name {clash[:_MAX_SHOWN]!r} of the quantised weight already exists in the model")


def _check_names(linked: LinkedModel, options: Options) -> None:
    names = {node.name for node in iterate_nodes(linked.model)}
    for name in options.exclude_nodes:
        if name not in names or not name:
            close = difflib.get_close_matches(name, names, n=1)
            raise StageError(
                f"the model has no node named {name[:_MAX_SHOWN]!r} to exclude",
                hint=f"did you mean {close[0][:_MAX_SHOWN]!r}?" if close else "use the names of the model's own nodes",
            )


def _weight_name(node: NodeProto, options: Options) -> str | None:
    if node.op_type not in options.operators or node.domain not in ("", "ai.onnx"):
        return None
    place = WEIGHT_INPUT[node.op_type]
    return node.input[place] if len(node.input) > place else None


@dataclass(slots=True)
class _Finder:
    linked: LinkedModel
    options: Options
    excluded: set[str]
    found: Targets = field(default_factory=Targets)

    def visit(self, graph: GraphProto, outer: tuple[dict[str, TensorProto], ...]) -> None:
        """Visit all nodes of a graph; `outer` are the initializers of the graphs around it."""
        scopes = (*outer, {tensor.name: tensor for tensor in graph.initializer})
        for node in list(graph.node):
            for inner in subgraphs(node):
                self.visit(inner, scopes)
            name = _weight_name(node, self.options)
            if name is not None:
                weight = next((scope[name] for scope in reversed(scopes) if name in scope), None)
                self._visit_node(graph, node, weight)

    def _visit_node(self, graph: GraphProto, node: NodeProto, weight: TensorProto | None) -> None:
        reason = self._reason(node, weight)
        if reason is not None or weight is None:
            self.found.left[reason or "computed"] += 1
            return
        operator = node.op_type
        if operator == "Gemm":
            node = split_gemm(self.linked, graph, node, weight)
        self.found.operators[node.name] = operator
        self.found.weights[weight.name] = tensor_bytes(weight)

    def _reason(self, node: NodeProto, weight: TensorProto | None) -> str | None:
        """The reason why a node is not quantised, or None."""
        if node.name in self.excluded:
            return "excluded"
        if weight is None:
            return "computed"
        if weight.data_type not in _TYPES or (node.op_type == "Gather" and weight.data_type == TensorProto.BFLOAT16):
            return "type"
        if not _is_matrix(weight, node) or not all(weight.dims):
            return "shape"
        # The reference packs two zero points into a byte across rows, which is wrong for rows with an odd number.
        odd = -(-weight.dims[0] // self.options.block_size) % 2 != 0
        return "odd blocks" if self.options.algorithm == "gptq" and odd and not self.options.symmetric else None


def _is_matrix(weight: TensorProto, node: NodeProto) -> bool:
    """All dimensions before the last two must be 1, which MatMul ignores."""
    dims = list(weight.dims)
    if node.op_type == "Gemm":
        return len(dims) == _MATRIX and _is_plain_product(node)
    return len(dims) == _MATRIX or (node.op_type == "MatMul" and len(dims) > _MATRIX and set(dims[:-2]) == {1})


def _is_plain_product(node: NodeProto) -> bool:
    values = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    return values.get("alpha", 1.0) == values.get("beta", 1.0) == 1.0 and not values.get("transA", 0)


def split_gemm(linked: LinkedModel, graph: GraphProto, node: NodeProto, weight: TensorProto) -> NodeProto:
    """Replace Gemm by MatMul and Add; the weight is transposed if the node says so. Returns the MatMul."""
    turned = integer_attribute(node, "transB")
    name = f"{node.output[0]}/weight" if turned else weight.name
    if turned:
        values = np.ascontiguousarray(linked.array(weight).T)
        graph.initializer.append(numpy_helper.from_array(values, name))
    bias = node.input[2] if len(node.input) > _MATRIX else ""
    product = f"{node.output[0]}/product" if bias else node.output[0]
    index = next(place for place, item in enumerate(graph.node) if item.name == node.name)
    if bias:
        graph.node.insert(index + 1, helper.make_node("Add", [product, bias], [node.output[0]], name=f"{node.name}b"))
    node.CopyFrom(helper.make_node("MatMul", [node.input[0], name], [product], name=node.name))
    return node
