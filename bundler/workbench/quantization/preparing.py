"""A model on its way to the quantiser: opset raised where the format needs it, then the reference's own pre-process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import onnx
from onnx import ModelProto, TensorProto
from onnxruntime.quantization.execution_providers.qnn import qnn_preprocess_model
from onnxruntime.quantization.shape_inference import quant_pre_process

from bundler.model.errors import StageError
from bundler.model.stage import Note
from bundler.workbench.quantization.reference import REFERENCE_ERRORS, own_errors, quiet
from bundler.workbench.structure import iterate_tensors, read_structure, tensor_bytes

LARGE: Final = 1 << 30
"""Bytes of weights from which on they leave the model file, which can hold 2 GB: some steps keep two copies."""
DATA_SUFFIX: Final = ".data"
LEAST_OPSET: Final = 10
"""Below, there are no pairs of quantising operators; the reference raises such models to 11 itself."""
_UPSAMPLE_OPSET: Final = 10
"""Up to here the pre-process raises the opset itself: it knows what becomes of Upsample, the converter does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """`form` says what was done: `full`, `merged`, `unmerged shapes`, `shapes only`, `qnn` or `none`."""

    path: Path
    form: str
    opset: int
    large: bool
    notes: tuple[Note, ...] = ()


def prepare(
    source: Path, scratch: Path, *, preprocess: bool, qnn: bool = False, least_opset: int = 0, raise_opset: bool = True
) -> Prepared:
    """The model in `scratch`, ready to be quantised. Raises `StageError`."""
    structure = read_structure(source)
    large = sum(tensor_bytes(tensor) for tensor in iterate_tensors(structure)) >= LARGE
    opset, notes = opset_of(structure), []
    if not raise_opset:
        _check_opset(opset, max(least_opset, LEAST_OPSET))
    if _UPSAMPLE_OPSET < opset < least_opset:
        source = _raise_opset(source, scratch, opset, least_opset)
    prepared, form = _preprocess(source, scratch, large, qnn=qnn) if preprocess else (None, "none")
    if preprocess and form not in ("full", "qnn"):
        notes.append(Note(text=_FALLBACKS[form]))
    path = _lift_constants(prepared or source, scratch, large)
    reached = opset_of(read_structure(path))
    if reached < least_opset:
        path, reached = _raise_opset(path, scratch, reached, least_opset), least_opset
    if opset < reached:
        notes.append(Note(text=f"the opset was raised from {opset} to {reached}, which the format needs"))
    return Prepared(path=path, form=form, opset=reached, large=large, notes=tuple(notes))


def opset_of(model: ModelProto) -> int:
    """The version of ONNX's own operator set, or 0."""
    return next((int(entry.version) for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)


def _check_opset(opset: int, least: int) -> None:
    if opset < least:
        raise StageError(
            f"the model has opset {opset}, and this format needs {least}",
            hint="allow raising it (`raise_opset`), quantise per tensor to 8 bits, or export the model again",
        )


def _raise_opset(source: Path, scratch: Path, opset: int, least: int) -> Path:
    target = scratch / "raised.onnx"
    with own_errors(
        f"the model's opset {opset} cannot be raised to {least}, which this format needs",
        hint="export the model again with a newer opset, or quantise per tensor to 8 bits",
    ):
        save(onnx.version_converter.convert_version(onnx.load(source), least), target)
    return target


_FALLBACKS: Final = {
    "merged": "the quantisation pre-process ran with conflicting symbolic dimensions merged",
    "unmerged shapes": "the quantisation pre-process ran without symbolic shape inference, which fails on this model",
    "shapes only": "the quantisation pre-process only inferred shapes: the rest of it cannot take this model",
    "none": "the quantisation pre-process cannot take this model; it was quantised as it is",
}
_FORMS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("full", {}),
    ("merged", {"auto_merge": True}),
    ("unmerged shapes", {"skip_symbolic_shape": True}),
    ("shapes only", {"skip_symbolic_shape": True, "skip_optimization": True}),
)
"""Forms of the pre-process, best first: some real models fail without `auto_merge`, and some with it."""


def _preprocess(source: Path, scratch: Path, large: bool, *, qnn: bool) -> tuple[Path | None, str]:  # noqa: FBT001 - private
    target = scratch / "preprocessed.onnx"
    data: dict[str, Any] = {}
    if large:
        location = target.name + DATA_SUFFIX
        data = {"save_as_external_data": True, "all_tensors_to_one_file": True, "external_data_location": location}
    if qnn:
        return _preprocess_qnn(source, target, data)
    for form, options in _FORMS:
        if _succeeds(lambda options=options: quant_pre_process(source, target, **options, **data)):  # type: ignore[misc]
            return target, form
    return None, "none"


def _preprocess_qnn(source: Path, target: Path, data: dict[str, Any]) -> tuple[Path | None, str]:
    """QNN's own pre-process writes nothing where it finds nothing to do."""
    done = _succeeds(lambda: qnn_preprocess_model(str(source), str(target), **data))
    return (target if done and target.exists() else None), ("qnn" if done else "none")


def _succeeds(step: Callable[[], object]) -> bool:
    try:
        with quiet():
            step()
    except REFERENCE_ERRORS:
        return False
    return True


def _lift_constants(path: Path, scratch: Path, large: bool) -> Path:  # noqa: FBT001 - private
    """Weights of Constant nodes become initializers: the reference takes only those for weights.

    A file outside `scratch` is copied there, too: the reference writes beside its input.
    """
    structure = read_structure(path)
    constants = any(node.op_type == "Constant" and not node.domain for node in structure.graph.node)
    if not constants and path.is_relative_to(scratch):
        return path
    with own_errors("the model cannot be read whole"):
        model = onnx.load(path)
        lift_constants(model)
        save(model, scratch / "lifted.onnx", large=large)
    return scratch / "lifted.onnx"


def lift_constants(model: ModelProto) -> int:
    """Make initializers of the main graph's Constant nodes that hold one tensor, in place; answers how many."""
    lifted = 0
    for index in reversed(range(len(model.graph.node))):
        node = model.graph.node[index]
        if node.op_type == "Constant" and not node.domain and [entry.name for entry in node.attribute] == ["value"]:
            tensor = TensorProto()
            tensor.CopyFrom(node.attribute[0].t)
            tensor.name = node.output[0]
            if not any(output.name == tensor.name for output in model.graph.output):
                model.graph.initializer.append(tensor)
                del model.graph.node[index]
                lifted += 1
    return lifted


def save(model: ModelProto, target: Path, *, large: bool = False) -> None:
    """Write `model`; where its weights are large, they go to one file beside it."""
    location = target.name + DATA_SUFFIX if large else None
    onnx.save_model(model, str(target), save_as_external_data=large, location=location)
