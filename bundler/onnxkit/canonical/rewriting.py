"""Rename and reorder a model in place: generated names and orders are replaced by those that the graph implies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

from bundler.model.errors import StageError
from bundler.onnxkit.canonical.walking import Scope, Walk, Walker, formal_inputs, formal_outputs, ordered_subgraphs
from bundler.onnxkit.structure import iterate_nodes, keep_only, subgraphs

NO_INFERENCE_OPS: Final = frozenset({("com.microsoft", "EPContext")})
"""Operators without shape inference: their outputs' types exist only in value_info, which is dropped for all others."""
INFERRED_DOMAINS: Final = frozenset(
    {"", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training", "com.microsoft"}
)
GENERATED_DIM_PREFIXES: Final = ("unk__",)
"""Names that shape inference generates for unknown dimensions, numbered in the order in which it ran."""
POSITIONAL_SUBGRAPH_DOMAINS: Final = frozenset({"", "ai.onnx"})
"""In these domains a subgraph's inputs and outputs are matched by position, so their names can change. BeamSearch and
similar operators (com.microsoft) read the names, so those stay."""


class _Names:
    """Generates names in order. One counter for all graphs, so that no subgraph shadows an outer name."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._taken = set(reserved)
        self._next: dict[str, int] = {}

    def of(self, stem: str) -> str:
        while True:
            number = self._next.get(stem, 0)
            self._next[stem] = number + 1
            name = f"{stem}_{number}"
            if name not in self._taken:
                self._taken.add(name)
                return name


@dataclass(slots=True)
class _Rewriter:
    """Renames and reorders one model in place."""

    walker: Walker
    values: _Names
    nodes: _Names

    def graph(self, graph: GraphProto, outer: Mapping[str, str], *, keep_formals: bool) -> None:
        walk = self.walker.walk(graph)
        names = dict(outer)
        if keep_formals:
            pinned = {value.name: value.name for value in (*graph.input, *graph.output)}
        else:
            pinned = {value.name: self.values.of("in") for value in graph.input}
        names.update(pinned)
        self._name_values(walk, names, pinned)
        self._initializers(graph, walk, names)
        untyped = _untyped_outputs(walk.order)
        keep_only(graph.value_info, lambda info: info.name in untyped)
        self._nodes(graph, walk, names)
        for value in (*graph.input, *graph.output, *graph.value_info):
            value.name = names[value.name]
            _clean_value(value)
        graph.value_info.sort(key=lambda info: info.name)
        self._quantization(graph, names)
        graph.doc_string = ""
        _sort_properties(graph.metadata_props)

    def function(self, function: FunctionProto) -> None:
        """A function's inputs, outputs and attributes are its interface and keep their names; its body is a scope."""
        walk = self.walker.walk(function)
        pinned = {name: name for name in (*function.input, *function.output)}
        names = dict(pinned)
        self._name_values(walk, names, pinned)
        self._nodes(function, walk, names)
        function.ClearField("value_info")
        function.doc_string = ""
        function.opset_import.sort(key=lambda opset: opset.domain)
        function.attribute.sort()
        function.attribute_proto.sort(key=lambda attribute: attribute.name)
        _sort_properties(function.metadata_props)

    def _name_values(self, walk: Walk, names: dict[str, str], pinned: Collection[str]) -> None:
        for name in walk.used_initializers:
            if name not in pinned:
                names[name] = self.values.of("w")
        for node in walk.order:
            for name in node.output:
                if name and name not in pinned:
                    names[name] = self.values.of(node.op_type)

    def _initializers(self, graph: GraphProto, walk: Walk, names: Mapping[str, str]) -> None:
        # A default value of a graph input is part of the interface even if no node reads it.
        live = dict.fromkeys((*walk.used_initializers, *formal_inputs(graph)))
        rank = {names[name]: place for place, name in enumerate(live)}
        keep_only(graph.initializer, lambda tensor: tensor.name in live)
        keep_only(graph.sparse_initializer, lambda sparse: sparse.values.name in live)
        for tensor in (*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)):
            tensor.name = names[tensor.name]
            tensor.doc_string = ""
            _sort_properties(tensor.metadata_props)
        for sparse in graph.sparse_initializer:
            sparse.indices.name = ""
        graph.initializer.sort(key=lambda tensor: rank[tensor.name])
        graph.sparse_initializer.sort(key=lambda sparse: rank[sparse.values.name])

    def _nodes(self, scope: Scope, walk: Walk, names: Mapping[str, str]) -> None:
        for node in walk.order:
            node.name = self.nodes.of(node.op_type)
        rank = {node.name: i for i, node in enumerate(walk.order)}
        live = set(map(id, walk.order))
        keep_only(scope.node, lambda node: id(node) in live)
        scope.node.sort(key=lambda node: rank[node.name])
        for node in walk.order:
            node.attribute.sort(key=lambda attribute: attribute.name)
            for attribute in node.attribute:
                attribute.doc_string = ""
            for number, graph in enumerate(ordered_subgraphs(node)):
                graph.name = f"{node.name}_{number}"
                self.graph(graph, names, keep_formals=node.domain not in POSITIONAL_SUBGRAPH_DOMAINS)
            node.input[:] = [names[name] if name else "" for name in node.input]
            node.output[:] = [names[name] if name else "" for name in node.output]
            node.doc_string = ""
            node.ClearField("metadata_props")

    @staticmethod
    def _quantization(graph: GraphProto, names: Mapping[str, str]) -> None:
        keep_only(graph.quantization_annotation, lambda annotation: annotation.tensor_name in names)
        for annotation in graph.quantization_annotation:
            annotation.tensor_name = names[annotation.tensor_name]
            for entry in annotation.quant_parameter_tensor_names:
                entry.value = names.get(entry.value, entry.value)
            _sort_properties(annotation.quant_parameter_tensor_names)
        graph.quantization_annotation.sort(key=lambda annotation: annotation.tensor_name)


def _untyped_outputs(nodes: Iterable[NodeProto]) -> set[str]:
    """Values whose type cannot be inferred again, so that their value_info must be kept."""
    return {
        name
        for node in nodes
        if node.domain not in INFERRED_DOMAINS or (node.domain, node.op_type) in NO_INFERENCE_OPS
        for name in node.output
    }


def _clean_value(value: ValueInfoProto) -> None:
    value.doc_string = ""
    _sort_properties(value.metadata_props)
    if value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape"):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param.startswith(GENERATED_DIM_PREFIXES):
                dim.ClearField("dim_param")


def _sort_properties(items: Any) -> None:
    items.sort(key=lambda entry: (entry.key, entry.value))


def _formals_everywhere(model: ModelProto) -> set[str]:
    """Names that are never generated: every interface that keeps its own names."""
    named = (node for node in iterate_nodes(model) if node.domain not in POSITIONAL_SUBGRAPH_DOMAINS)
    scopes = [model.graph, *model.functions, *(graph for node in named for graph in subgraphs(node))]
    return {name for scope in scopes for name in (*formal_inputs(scope), *formal_outputs(scope))}


def _clean_model(model: ModelProto) -> None:
    used = {"" if node.domain == "ai.onnx" else node.domain for node in iterate_nodes(model)} | {""}
    # ONNX Runtime imports every domain that it has; an older or smaller runtime may not have them all.
    keep_only(model.opset_import, lambda opset: ("" if opset.domain == "ai.onnx" else opset.domain) in used)
    model.opset_import.sort(key=lambda opset: opset.domain)
    model.functions.sort(key=lambda function: (function.domain, function.name, function.overload))
    model.producer_name, model.producer_version, model.doc_string = "", "", ""
    model.graph.name = "graph"
    _sort_properties(model.metadata_props)


def rewrite_model(model: ModelProto) -> None:
    """Bring a model into canonical form in place. Raises `StageError`."""
    if model.training_info:
        raise StageError("the model contains training information", hint="export the model for inference")
    walker = Walker()
    for scope in (model.graph, *model.functions):
        walker.walk(scope)
    rewriter = _Rewriter(walker, _Names(_formals_everywhere(model)), _Names(()))
    rewriter.graph(model.graph, {}, keep_formals=True)
    for function in model.functions:
        rewriter.function(function)
    _clean_model(model)
