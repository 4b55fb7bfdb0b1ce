"""Read a model's structure, check that it can be used, and collect the facts for planning and reports."""

from __future__ import annotations

import math
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Final

import onnx
from onnx import ModelProto, TensorProto

from bundler.model.codec import decode, encode
from bundler.model.errors import ModelError
from bundler.model.facts import ModelFacts
from bundler.model.signature import Signature
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.compared_constants import find_masks
from bundler.onnxkit.model_faults import raise_model_error
from bundler.onnxkit.node_order import sort_model
from bundler.onnxkit.placement_facts import tidy
from bundler.onnxkit.signatures import model_signature
from bundler.onnxkit.structure import (
    count_listed,
    count_operators,
    find_doubles,
    iterate_nodes,
    iterate_tensors,
    random_operators,
    read_structure,
    tensor_bytes,
)
from bundler.stages.inspect.external import check_external_data
from bundler.stages.inspect.functions import check_functions
from bundler.stages.inspect.generated import count_generated_bytes
from bundler.stages.inspect.memory import estimate_peak_memory
from bundler.stages.inspect.operators import (
    check_operators,
    check_versions,
    count_uneven_convolutions,
    domain_of,
    foreign_domains,
    has_control_flow,
    is_quantized,
)
from bundler.stages.inspect.ranks import check_ranks
from bundler.stages.inspect.spec import Options
from bundler.stages.inspect.texts import check_names, read_metadata


def run(request: StageRequest, report: Report) -> StageResult:
    """Facts about the model. Raises `ModelError` for an unusable one."""
    path = request.input("model")
    options = decode(Options, dict(request.options))
    with raise_model_error("the model is not valid ONNX", _CHECK_HINT):
        facts, unsorted = _inspect(path, options.name, report)
    return StageResult(facts=encode(facts), notes=_notes(facts, unsorted=unsorted))


def _inspect(path: Path, name: str, report: Report) -> tuple[ModelFacts, bool]:
    """The facts, and whether the graph's nodes are out of order."""
    report(0.0, "reading the structure")
    model = read_structure(path)
    check_names(model)
    check_ranks(model)
    files = check_external_data(iterate_tensors(model), path.parent)
    report(0.5, "checking the graph")
    if model.training_info:
        raise ModelError("the model contains training information", hint="export the model for inference")
    _check_outputs(model)
    unsorted = sort_model(model)
    check_versions(model)
    check_operators(model)
    check_functions(model)
    _check_form(model)
    report(0.8, "estimating memory")
    facts = _collect(model, path, files, name)
    _check_sizes(facts)
    return facts, unsorted


_CHECK_HINT: Final = "export it again; `onnx.checker.check_model` reports the same"
_MAX_DOUBLES: Final = 3
_MAX_BYTES: Final = 1 << 60
"""Limit for declared sizes, more than any machine has: they are checked before anything is allocated. The largest
of 121 models of public packages has 85 MB of weights.
"""


def _check_sizes(facts: ModelFacts) -> None:
    sizes = {
        "elements of its weights": facts.parameter_count,
        "bytes of its weights": facts.weight_bytes,
        "bytes of its generated constants": facts.generated_bytes,
        "bytes of its values": facts.peak_memory_bytes or 0,
    }
    wrong = tuple(f"{what}: {size}" for what, size in sizes.items() if not 0 <= size < _MAX_BYTES)
    if wrong:
        raise ModelError("the model declares impossible sizes", details=wrong, hint="export the model again")


def _check_outputs(model: ModelProto) -> None:
    """Reject outputs with equal names, which the ONNX library accepts: callers find each by its name."""
    counts = Counter(info.name for info in model.graph.output)
    twice = tuple(tidy(repr(name)) for name, count in counts.items() if count > 1)
    if twice:
        raise ModelError(
            "several outputs of the model have the same name", details=twice, hint="give each output a unique name"
        )


def _check_form(model: ModelProto) -> None:
    """Run ONNX's own checker, on a copy whose missing weights are declared empty. Raises its errors."""
    copy = deepcopy(model)
    for tensor in iterate_tensors(copy):
        _declare_empty(tensor)
    onnx.checker.check_model(copy, full_check=False, check_custom_domain=False)


def _declare_empty(tensor: TensorProto) -> None:
    """Turn a tensor whose data is elsewhere (external, or not read) into an empty one."""
    del tensor.external_data[:]
    tensor.ClearField("data_location")
    typed = (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data, tensor.uint64_data)
    if not (tensor.HasField("raw_data") or tensor.string_data or any(len(data) for data in typed)):
        del tensor.dims[:]
        tensor.dims.append(0)


def _collect(model: ModelProto, path: Path, files: tuple[str, ...], name: str) -> ModelFacts:
    weights = list(iterate_tensors(model))
    weight_bytes = sum(tensor_bytes(tensor) for tensor in weights)
    operators = count_operators(model)
    external_sizes = tuple((path.parent / file).stat().st_size for file in files)
    signature = model_signature(model)
    return ModelFacts(
        name=name,
        ir_version=model.ir_version,
        opsets={domain_of(item.domain): item.version for item in model.opset_import},
        producer=" ".join(filter(None, map(_as_text, (model.producer_name, model.producer_version)))),
        signature=signature,
        operators=operators,
        node_count=sum(1 for _ in iterate_nodes(model)),
        parameter_count=sum(math.prod(tensor.dims) for tensor in weights) + count_listed(model),
        file_bytes=path.stat().st_size,
        weight_bytes=weight_bytes,
        generated_bytes=count_generated_bytes(model),
        external_bytes=sum(external_sizes),
        external_files=files,
        external_sizes=external_sizes,
        custom_domains=foreign_domains(model),
        random_operators=random_operators(model),
        control_flow=has_control_flow(operators),
        quantized=is_quantized(operators),
        peak_memory_bytes=estimate_peak_memory(model, weight_bytes),
        metadata=read_metadata(model),
        masks=_list_masks(model, signature),
        doubles=find_doubles(model)[:_MAX_DOUBLES],
        uneven_convolutions=count_uneven_convolutions(model),
    )


def _list_masks(model: ModelProto, signature: Signature) -> tuple[str, ...]:
    names = tuple(port.name for port in signature.inputs if "int" in (port.type.element_type or ""))
    return tuple(sorted(find_masks(model, names)))


def _as_text(text: str | bytes) -> str:
    """Protobuf returns a string field that is not UTF-8 as bytes."""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def _notes(facts: ModelFacts, *, unsorted: bool) -> tuple[Note, ...]:
    notes = []
    if unsorted:
        notes.append(Note(text="the graph's nodes are not in order; ONNX Runtime sorts them"))
    if facts.random_operators:
        names = ", ".join(facts.random_operators)
        text = f"the model draws random numbers ({names}): outputs that depend on them differ between runs"
        notes.append(Note(text=text, level="warning"))
    return tuple(notes)
