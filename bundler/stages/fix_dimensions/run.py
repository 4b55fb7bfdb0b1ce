"""Replace named dimensions by sizes, on inputs, on outputs and in between. The weights are never loaded."""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Mapping
from pathlib import Path

import onnx
from onnx import ModelProto, TensorProto
from onnxruntime.tools.onnx_model_utils import make_dim_param_fixed

from bundler.model.codec import decode, encode
from bundler.model.errors import StageError, UsageError
from bundler.model.stage import Report, StageRequest, StageResult
from bundler.stages.fix_dimensions.spec import Options
from bundler.workbench.canonical.tensor_data import DataFolders, embed_data
from bundler.workbench.signatures import model_signature
from bundler.workbench.structure import iterate_graphs, iterate_tensors, read_structure

ENTRY = "model.onnx"


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
    _copy_external_files(model, source, request.output)
    _take_back_weights(model, source)
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


def _copy_external_files(model: ModelProto, source: Path, output: Path) -> None:
    """Beside the new model stands all that it needs; the ONNX format forbids links, so these are copies."""
    for name in sorted(_locations(model) - {source.name}):
        if name == ENTRY:
            raise StageError(f"the model's external data has the name {ENTRY!r}", hint="save it under another name")
        target = output / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.parent / name, target)


def _locations(model: ModelProto) -> set[str]:
    external = (tensor for tensor in iterate_tensors(model) if tensor.data_location == TensorProto.EXTERNAL)
    return {entry.value for tensor in external for entry in tensor.external_data if entry.key == "location"}


def _take_back_weights(model: ModelProto, source: Path) -> None:
    """What stood in the model file goes back into it, as it was."""
    folders = DataFolders(source, source.parent)
    for tensor in iterate_tensors(model):
        if any(entry.key == "location" and entry.value == source.name for entry in tensor.external_data):
            embed_data(tensor, folders)
