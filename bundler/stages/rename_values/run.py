"""Rename the inputs, outputs and dynamic dimensions of a model. No weights are loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from onnx import GraphProto, ModelProto, TypeProto

from bundler.model.codec import decode
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.canonical.tensor_data import write_linked
from bundler.onnxkit.structure import defined_names, iterate_graphs, read_names, read_structure, subgraphs
from bundler.stages.rename_values.spec import Options

ENTRY = "model.onnx"

Fresh = Callable[[str], str]
"""The name of an inner value: itself, or a free one where the name is now that of an input, output or dimension."""


def run(request: StageRequest, report: Report) -> StageResult:
    """`model.onnx` with its external data beside it."""
    source, options = request.input("model"), decode(Options, dict(request.options))
    model = read_structure(source, link=True)
    report(0.0, "renaming")
    rename_model(model, options.names)
    report(0.5, "writing")
    write_linked(model, source, request.output / ENTRY)
    listed = ", ".join(f"{old!r} → {new!r}" for old, new in options.names.items())
    return StageResult(entry=ENTRY, notes=(Note(text=f"renamed: {listed}"),))


def rename_model(model: ModelProto, names: Mapping[str, str]) -> None:
    """Rename inputs, outputs and dimensions of `model`. Inner values and dimensions that have a new name already get
    another one.
    """
    graphs = list(iterate_graphs(model))
    ports = {value.name for value in (*model.graph.input, *model.graph.output)}
    values = {old: new for old, new in names.items() if old in ports}
    used = {name for graph in graphs for name in defined_names(graph)}.union(
        *(read_names(node) for graph in graphs for node in graph.node)
    )
    inner = partial(_free_name, taken=frozenset(values.values()), used=used)
    _rename_values(model.graph, {name: values.get(name) or inner(name) for name in defined_names(model.graph)}, inner)
    _rename_dimensions(graphs, names)


def _free_name(name: str, *, taken: frozenset[str], used: set[str]) -> str:
    if name not in taken:
        return name
    free = next(text for number in range(len(used) + 1) if (text := f"{name}_{number}") not in used | taken)
    used.add(free)
    return free


def _rename_values(graph: GraphProto, scope: Mapping[str, str], inner: Fresh) -> None:
    """Rename what the graph and those nested in it define and read; `scope` has the new names of all that it sees."""
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = scope.get(value.name, value.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = scope.get(sparse.values.name, sparse.values.name)
    for annotation in graph.quantization_annotation:
        annotation.tensor_name = scope.get(annotation.tensor_name, annotation.tensor_name)
        for entry in annotation.quant_parameter_tensor_names:
            entry.value = scope.get(entry.value, entry.value)
    for node in graph.node:
        node.input[:] = [scope.get(name, name) for name in node.input]
        node.output[:] = [scope.get(name, name) for name in node.output]
        for nested in subgraphs(node):
            # What a nested graph defines hides an outer value of that name.
            _rename_values(nested, {**scope, **{name: inner(name) for name in defined_names(nested)}}, inner)


def _rename_dimensions(graphs: list[GraphProto], names: Mapping[str, str]) -> None:
    kinds = [
        kind
        for graph in graphs
        for value in (*graph.input, *graph.output, *graph.value_info)
        for kind in _tensor_types(value.type)
    ]
    dimensions = [dim for kind in kinds for dim in kind.shape.dim if dim.HasField("dim_param")]
    used = {dim.dim_param for dim in dimensions}
    inner = partial(_free_name, taken=frozenset(new for old, new in names.items() if old in used), used=used)
    symbols = {name: names.get(name) or inner(name) for name in sorted(used)}
    for dim in dimensions:
        dim.dim_param = symbols[dim.dim_param]


def _tensor_types(kind: TypeProto) -> Iterator[TypeProto.Tensor]:
    held = kind.WhichOneof("value")
    if held in ("tensor_type", "sparse_tensor_type"):
        yield getattr(kind, held)
    elif held in ("sequence_type", "optional_type"):
        yield from _tensor_types(getattr(kind, held).elem_type)
    elif held == "map_type":
        yield from _tensor_types(kind.map_type.value_type)
