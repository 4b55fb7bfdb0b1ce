"""Replace named dimensions by sizes, on inputs, on outputs and in between. The weights are never loaded."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path

import onnx
from onnx import ModelProto, TensorProto
from onnxruntime.tools.onnx_model_utils import make_dim_param_fixed

from bundler.model.codec import decode, encode
from bundler.model.errors import UsageError
from bundler.model.stage import Report, StageRequest, StageResult
from bundler.stages.fix_dimensions.spec import Options
from bundler.workbench.canonical.tensor_data import DataFolders, embed_non_initializers, place_initializers
from bundler.workbench.signatures import model_signature
from bundler.workbench.structure import iterate_graphs, iterate_tensors, read_structure

ENTRY = "model.onnx"
_EMBEDDED_LIMIT = 1 << 26
"""Bytes of a model file from which on its weights go to an external file."""
_EXTERNAL_THRESHOLD = 1024
"""Bytes of a tensor from which on it goes there."""


def run(request: StageRequest, report: Report) -> StageResult:
    """`model.onnx` with its external files beside it. Raises `UsageError` for dimensions that the model has not."""
    source, options = request.input("model"), decode(Options, dict(request.options))
    model = read_structure(source, link=True)
    _check_names(model_signature(model).symbols, options.dimensions)
    report(0.0, "fixing dimensions")
    for graph in iterate_graphs(model):
        for name, size in options.dimensions.items():
            make_dim_param_fixed(graph, name, size)
    _fix_outputs(model)
    report(0.5, "writing")
    _place_weights(model, source, request.output / f"{ENTRY}.data")
    (request.output / ENTRY).write_bytes(model.SerializeToString(deterministic=True))
    facts = {"dimensions": dict(options.dimensions), "signature": encode(model_signature(model))}
    return StageResult(facts=facts, entry=ENTRY)


def _check_names(symbols: tuple[str, ...], dimensions: Mapping[str, int]) -> None:
    problems = []
    for name, size in dimensions.items():
        if name not in symbols:
            close = difflib.get_close_matches(name, symbols, 1)
            problems.append(f"no dimension {name!r}" + (f" (did you mean {close[0]!r}?)" if close else ""))
        elif size < 1:
            problems.append(f"{name!r} cannot have the size {size}")
    if problems:
        known = f"the model's dynamic dimensions are: {', '.join(map(repr, symbols)) or 'none'}"
        raise UsageError(
            "the dimensions cannot be fixed",
            details=(*problems, known),
            hint="`bundler inspect MODEL` shows every input with its dimensions",
        )


def _fix_outputs(model: ModelProto) -> None:
    """Give outputs the sizes that now follow; where inference cannot tell, they stay as they are."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return
    for output, found in zip(model.graph.output, inferred.graph.output, strict=True):
        dims = found.type.tensor_type.shape.dim
        if output.type.HasField("tensor_type") and dims and all(dim.HasField("dim_value") for dim in dims):
            output.type.tensor_type.shape.CopyFrom(found.type.tensor_type.shape)


def _place_weights(model: ModelProto, source: Path, data: Path) -> None:
    """Small models keep their weights inside; others get one external file, copied from file to file."""
    external = any(tensor.data_location == TensorProto.EXTERNAL for tensor in _declared_tensors(source))
    threshold = _EXTERNAL_THRESHOLD if external or source.stat().st_size > _EMBEDDED_LIMIT else None
    folders = DataFolders(source, source.parent)
    initializers = [tensor for graph in iterate_graphs(model) for tensor in graph.initializer]
    place_initializers(initializers, folders, data, threshold)
    embed_non_initializers(model, folders)


def _declared_tensors(source: Path) -> Iterator[TensorProto]:
    """The tensors as the file itself declares them."""
    return iterate_tensors(read_structure(source))
