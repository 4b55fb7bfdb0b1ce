"""Replace conditions (`If`) that fixed sizes or constants decide by the branch that is taken.

Exporters leave such conditions on ranks and sizes. Compilers for NPUs take few conditions, quantisers do not enter
branches, and ONNX Runtime decides an inner condition before the outer one, also in a branch that no call takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from bundler.onnxkit.inference import infer_shapes
from bundler.onnxkit.size_folding import fold_sizes
from bundler.onnxkit.structure import (
    captured_names,
    defined_names,
    iterate_graphs,
    iterate_nested,
    keep_only,
    lift_constants,
    read_constant,
    rename_captures,
    subgraphs,
)

_MAX_ROUNDS: Final = 32
"""The sizes behind a condition are known once it is replaced, so conditions in a row take a round each; others stay."""
_SIDES: Final = ("else_branch", "then_branch")
_STANDARD: Final = ("", "ai.onnx")
_INVALID: Final = (onnx.shape_inference.InferenceError, RuntimeError, ValueError)
"""Errors of shape inference: the runtime refuses such a graph, too."""


def inline_decided_branches(model: ModelProto) -> int:
    """Replace the decided conditions of `model`, those in branches included; returns their number.

    Conditions in loop bodies stay: sizes may differ from one iteration to the next.
    """
    names = Counter(name for graph in iterate_graphs(model) for name in defined_names(graph))
    return _inline_graph(model.graph, _Scope(model=model, infos={}, tensors={}), names)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """What a graph sees around it: types of outer values, and those that are known before a run."""

    model: ModelProto
    infos: Mapping[str, ValueInfoProto]
    tensors: Mapping[str, TensorProto]

    def as_model(self, graph: GraphProto) -> ModelProto:
        """A copy of the graph as a model: the outer values that it reads are inputs, or initializers if known."""
        model = ModelProto(ir_version=self.model.ir_version, graph=graph)
        model.opset_import.extend(self.model.opset_import)
        model.functions.extend(self.model.functions)
        for name in sorted(captured_names(graph)):
            if name in self.tensors:
                model.graph.initializer.append(self.tensors[name])
            else:
                model.graph.input.append(self.infos.get(name, ValueInfoProto(name=name)))
        overridable = {info.name for info in model.graph.input}
        keep_only(model.graph.initializer, lambda tensor: tensor.name not in overridable)
        return model

    def inside(self, folded: GraphProto) -> _Scope:
        """The scope of the subgraphs of a graph, which is given with its sizes folded."""
        infos = {info.name: info for info in (*folded.input, *folded.value_info)}
        tensors = {tensor.name: tensor for tensor in folded.initializer}
        return _Scope(model=self.model, infos={**self.infos, **infos}, tensors={**self.tensors, **tensors})


def _inline_graph(graph: GraphProto, scope: _Scope, names: Counter[str]) -> int:
    """From the outside in: conditions in a branch that is not taken go with it."""
    count = 0
    for _ in range(_MAX_ROUNDS):
        if not any(_conditions(graph)):
            break
        copy = scope.as_model(graph)
        for inner in iterate_graphs(copy):
            lift_constants(inner)
        folded = fold_sizes(copy).graph
        known = {tensor.name: tensor for tensor in folded.initializer}
        decided = [(index, side) for index, node in _conditions(graph) if (side := _choose_side(node, known))]
        if not decided:
            inside = scope.inside(folded)
            branches = [branch for _, node in _conditions(graph) for branch in subgraphs(node)]
            return count + sum(_inline_branch(branch, inside, names) for branch in branches)
        for index, side in reversed(decided):
            _inline_node(graph, index, side, names)
        count += len(decided)
    return count


def _inline_branch(branch: GraphProto, scope: _Scope, names: Counter[str]) -> int:
    """A branch that no call with these sizes takes may be invalid with its own conditions decided: it stays then."""
    tried = GraphProto()
    tried.CopyFrom(branch)
    count = _inline_graph(tried, scope, names)
    if not count:
        return 0
    try:
        infer_shapes(scope.as_model(tried), data_prop=True, strict=True)
    except _INVALID:
        return 0
    branch.CopyFrom(tried)
    return count


def _conditions(graph: GraphProto) -> Iterator[tuple[int, NodeProto]]:
    for index, node in enumerate(graph.node):
        if node.op_type == "If" and node.domain in _STANDARD:
            yield index, node


def _choose_side(node: NodeProto, known: Mapping[str, TensorProto]) -> str:
    """The attribute with the branch that is taken; empty if it is not known."""
    tensor = known.get(next(iter(node.input), ""))
    value = None if tensor is None else read_constant(tensor)
    side = "" if value is None or value.size != 1 else _SIDES[bool(value.reshape(-1)[0])]
    return side if any(item.name == side for item in node.attribute) else ""


def _inline_node(graph: GraphProto, index: int, side: str, names: Counter[str]) -> None:
    """Put the nodes and weights of a branch in the place of its condition."""
    nodes = list(graph.node)
    outputs = list(nodes[index].output)
    branch = next(item.g for item in nodes[index].attribute if item.name == side)
    passed = _rename_defined(branch, outputs, names)
    del graph.node[:]
    graph.node.extend([*nodes[:index], *branch.node, *passed, *nodes[index + 1 :]])
    graph.initializer.extend(branch.initializer)
    graph.sparse_initializer.extend(branch.sparse_initializer)
    graph.value_info.extend(info for info in branch.value_info if info.name not in outputs)


def _rename_defined(branch: GraphProto, outputs: Sequence[str], names: Counter[str]) -> list[NodeProto]:
    """Give the values that a branch defines names that no other graph has: those of the condition's outputs if
    possible. Returns the nodes that pass on the other outputs: outer values, weights, and a value that is given twice.
    """
    free = {name for node in branch.node for name in node.output}
    new, passed = dict[str, str](), []
    for value, output in zip(branch.output, outputs, strict=False):
        if output and value.name in free:
            free.remove(value.name)
            new[value.name] = output
        elif output:
            passed.append((value, output))
    for name in sorted(defined_names(branch) - new.keys() - {""}):
        new[name] = _find_name(name, names)
    for node in branch.node:
        for inner in iterate_nested(node):  # the outputs' names become those of values around these graphs
            _rename_own(inner, {name: _find_name(name, names) for name in (defined_names(inner) & {*outputs}) - {""}})
    _rename_own(branch, new)
    return [helper.make_node("Identity", [value.name], [output]) for value, output in passed]


def _rename_own(graph: GraphProto, new: Mapping[str, str]) -> None:
    """Rename values that a graph itself defines, in all that reads them. A new name may be another's old one."""
    for node in graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
        for inner in subgraphs(node):
            rename_captures(inner, new)
    sparse = [item.values for item in graph.sparse_initializer]
    for item in (*graph.input, *graph.output, *graph.value_info, *graph.initializer, *sparse):
        item.name = new.get(item.name, item.name)


def _find_name(name: str, names: Counter[str]) -> str:
    if names[name] <= 1:
        return name
    number = next(number for number in range(1, len(names) + 2) if f"{name}.{number}" not in names)
    names[f"{name}.{number}"] = 1
    return f"{name}.{number}"
