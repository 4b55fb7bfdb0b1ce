"""Prepare a model for the quantiser: raise the opset if the format requires it, then run the reference's pre-process.

Its symbolic shape inference is slow (16 of 17 seconds for a text detector) and does not support every model; ONNX's own
shape inference finds the same shapes in most models.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import onnx
import onnxruntime
from onnx import ModelProto
from onnxruntime.quantization.fusions import ReplaceUpsampleWithResize
from onnxruntime.quantization.onnx_model import ONNXModel
from onnxruntime.quantization.quant_utils import (
    add_infer_metadata,
    add_pre_process_metadata,
    save_and_reload_model_with_shape_infer,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

from bundler.model.errors import StageError
from bundler.model.stage import Note
from bundler.onnxkit.node_order import write_sorted
from bundler.onnxkit.quantization.naming import Resolver, make_resolver, name_nodes
from bundler.onnxkit.quantization.provider_rules import find_rules
from bundler.onnxkit.quantization.reference import REFERENCE_ERRORS, own_errors, quiet
from bundler.onnxkit.quantization.shapes import infer_structure, infer_symbolically, knows_types, load_with_shapes
from bundler.onnxkit.structure import has_external_data, iterate_tensors, read_structure, standard_opset, tensor_bytes

MAX_EMBEDDED_BYTES: Final = 1 << 30
"""Bytes of weights from which they leave the model file, which can hold 2 GB: some steps keep two copies."""
DATA_SUFFIX: Final = ".data"
MIN_OPSET: Final = 10
"""The first opset with Q/DQ pairs; the reference raises older models to 11 itself."""
_UPSAMPLE_OPSET: Final = 10
"""Up to this opset the pre-process raises the opset itself: it converts Upsample, which the converter does not."""
_UPSAMPLE_TARGET: Final = 11

Shapes = Literal["auto", "plain", "symbolic"]
"""Shape inference: by ONNX (`plain`), with the reference's symbolic inference before it, or as needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """`form` is the pre-process that was used: `plain`, `full` (with symbolic shapes), `merged`, `unmerged shapes`,
    `shapes only`, the name of a provider's rules or `none`. `marked`: whether the mark of the pre-process is in the
    file; otherwise it is set in memory. `named`: whether nodes get names.
    """

    path: Path
    form: str
    opset: int
    large: bool
    marked: bool = True
    named: bool = False
    notes: tuple[Note, ...] = ()

    def read(self) -> ModelProto:
        """The whole model, a new copy, because quantisers change their input. Raises `StageError`."""
        with own_errors("the model cannot be read"):
            model = load_with_shapes(self.path)
            if not self.marked:
                add_pre_process_metadata(model)
                add_infer_metadata(model)
        return name_nodes(model) if self.named else model

    def read_structure(self) -> ModelProto:
        """The model without weights."""
        model = read_structure(self.path)
        return name_nodes(model) if self.named else model

    def resolver(self, source: ModelProto) -> Resolver:
        """Finds the successors of the nodes of `source`."""
        return make_resolver(source, read_structure(self.path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """The requested preparation. `operators` are those that will be quantised; `rules` names a provider's own."""

    preprocess: bool = True
    shapes: Shapes = "auto"
    rules: str = ""
    operators: Collection[str] = ()
    least_opset: int = 0
    raise_opset: bool = True


def prepare(source: Path, scratch: Path, asked: Preparation) -> Prepared:
    """The model in `scratch`, ready to be quantised. Raises `StageError`."""
    structure = read_structure(source)
    large = sum(tensor_bytes(tensor) for tensor in iterate_tensors(structure)) >= MAX_EMBEDDED_BYTES
    with own_errors("the model cannot be read"):
        # The reference visits nodes in order, and has no scales for values that it has not seen.
        source = write_sorted(source, scratch / "sorted.onnx", external=large)
    opset, least_opset, notes = standard_opset(structure), asked.least_opset, []
    if not asked.raise_opset:
        _check_opset(opset, max(least_opset, MIN_OPSET))
    if _UPSAMPLE_OPSET < opset < least_opset:
        source = _raise_opset(source, scratch, opset, least_opset)
    done = _preprocess(source, scratch, large, asked) if asked.preprocess else _Done(None, "none")
    if asked.preprocess and done.form in _FALLBACKS:
        notes.append(Note(text=_FALLBACKS[done.form]))
    path = _lift_constants(done.path or source, scratch, large)
    reached = standard_opset(read_structure(path))
    if reached < least_opset:
        path, reached = _raise_opset(path, scratch, reached, least_opset), least_opset
    if opset < reached:
        notes.append(Note(text=f"the opset was raised from {opset} to {reached}, which the format requires"))
    return Prepared(path=path, form=done.form, opset=reached, large=large, marked=done.marked, notes=tuple(notes))


def _check_opset(opset: int, least: int) -> None:
    if opset < least:
        hint = "allow raising it (`raise_opset`), quantise per tensor to 8 bits, or export the model again"
        raise StageError(f"the model has opset {opset}, and this format requires {least}", hint=hint)


def _raise_opset(source: Path, scratch: Path, opset: int, least: int) -> Path:
    target = scratch / "raised.onnx"
    with own_errors(
        f"the model's opset {opset} cannot be raised to {least}, which this format requires",
        hint="export the model again with a newer opset, or quantise per tensor to 8 bits",
    ):
        save(onnx.version_converter.convert_version(onnx.load(source), least), target)
    return target


_FALLBACKS: Final = {
    "merged": "the quantisation pre-process ran with conflicting symbolic dimensions merged",
    "unmerged shapes": "the quantisation pre-process ran without symbolic shape inference, which fails on this model",
    "shapes only": "the quantisation pre-process only inferred shapes: the rest of it does not support this model",
    "none": "the quantisation pre-process does not support this model; the model was quantised without it",
}


@dataclass(frozen=True, slots=True)
class _Done:
    path: Path | None
    form: str
    marked: bool = True


def _preprocess(source: Path, scratch: Path, large: bool, asked: Preparation) -> _Done:  # noqa: FBT001 - private
    if asked.rules:
        return _preprocess_by_rules(source, scratch, large, asked.rules)
    source = _raise_old(source, scratch, large)
    plain: _Done | None = None
    if asked.shapes != "symbolic":
        plain = _optimize(source, scratch / "preprocessed.onnx", large, "plain")
        if asked.shapes == "plain" or _is_enough(plain.path or source, asked.operators):
            return plain
    # Some models fail without merging, and some with it.
    for form, merge in (("full", False), ("merged", True)):
        inferred = _infer_symbolically(source, scratch, large, merge=merge)
        if inferred:
            return _optimize(inferred, scratch / "preprocessed.onnx", large, form)
    plain = plain or _optimize(source, scratch / "preprocessed.onnx", large, "plain")
    return replace(plain, form="unmerged shapes") if plain.form == "plain" else plain


def _is_enough(path: Path, operators: Collection[str]) -> bool:
    try:
        return knows_types(infer_structure(path), operators)
    except REFERENCE_ERRORS:
        return False


def _raise_old(source: Path, scratch: Path, large: bool) -> Path:  # noqa: FBT001 - private
    """Raise an opset with Upsample, as the reference does."""
    opset, target = standard_opset(read_structure(source)), scratch / "modern.onnx"
    if opset > _UPSAMPLE_OPSET:
        return source

    def raise_opset() -> None:
        model = onnx.load(source)
        ReplaceUpsampleWithResize(ONNXModel(model), opset).apply()
        model = onnx.version_converter.convert_version(model, _UPSAMPLE_TARGET)
        save(save_and_reload_model_with_shape_infer(model), target, large=large)

    return target if _succeeds(raise_opset) else source


def _infer_symbolically(source: Path, scratch: Path, large: bool, *, merge: bool) -> Path | None:  # noqa: FBT001
    target = scratch / "symbolic.onnx"
    done = _succeeds(lambda: save(infer_symbolically(onnx.load(source), merge=merge), target, large=large))
    return target if done else None


def _optimize(source: Path, target: Path, large: bool, form: str) -> _Done:  # noqa: FBT001 - private
    """The rest of the reference's pre-process: ONNX Runtime's basic optimisation, then the mark, set later."""
    if large:
        data = {**_external(target), "external_data_size_threshold": 1024}
        for skipped in (False, True):
            step = {"skip_symbolic_shape": True, "skip_optimization": skipped}
            if _succeeds(lambda step=step: quant_pre_process(source, target, **step, **data)):  # type: ignore[misc]
                return _Done(target, "shapes only" if skipped else form)
        return _Done(None, "none")
    if has_external_data(read_structure(source)):
        whole = target.with_name("whole.onnx")
        with own_errors("the model cannot be read"):
            save(onnx.load(source), whole)
        source = whole
    done = _succeeds(lambda: _write_optimized(source, target))
    return _Done(target, form, marked=False) if done else _Done(source, "shapes only", marked=False)


def _write_optimized(source: Path, target: Path) -> None:
    """Folding and fusing need no weights in the layout of kernels that never run."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(target)
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.disable_prepacking", "1")
    onnxruntime.InferenceSession(str(source), options)


def _external(target: Path) -> dict[str, Any]:
    location = target.name + DATA_SUFFIX
    return {"save_as_external_data": True, "all_tensors_to_one_file": True, "external_data_location": location}


def _preprocess_by_rules(source: Path, scratch: Path, large: bool, rules: str) -> _Done:  # noqa: FBT001 - private
    """A provider's own pre-process writes nothing when it finds nothing to do.

    It keeps batch normalisations, whose rounded scales lose accuracy on the device: a model with 55 dB on the CPU had 5
    in emulation, and 55 with them folded into the convolutions before.
    """
    target = scratch / "preprocessed.onnx"
    folded: Path | None = None
    if any(node.op_type == "BatchNormalization" for node in read_structure(source).graph.node):
        folded = _optimize(source, scratch / "folded.onnx", large, rules).path
        source = folded or source
    data = _external(target) if large else {}
    preprocess = find_rules(rules).preprocess
    done = _succeeds(lambda: preprocess(str(source), str(target), **data))
    return _Done(target if done and target.exists() else folded, rules if done else "none")


def _succeeds(step: Callable[[], object]) -> bool:
    try:
        with quiet():
            step()
    except REFERENCE_ERRORS:
        return False
    return True


def _lift_constants(path: Path, scratch: Path, large: bool) -> Path:  # noqa: FBT001 - private
    """Turn weights in Constant nodes into initializers, which the reference requires.

    A file outside `scratch` is copied there as well, because the reference writes beside its input.
    """
    structure = read_structure(path)
    constants = any(node.op_type == "Constant" and not node.domain for node in structure.graph.node)
    if not constants and path.is_relative_to(scratch):
        return path
    with own_errors("the model cannot be read"):
        model = onnx.load(path)
        lift_constants(model)
        save(model, scratch / "lifted.onnx", large=large)
    return scratch / "lifted.onnx"


def lift_constants(model: ModelProto) -> int:
    """Turn the main graph's Constant nodes with one tensor into initializers, in place; returns their number."""
    lifted = 0
    outputs = {output.name for output in model.graph.output}
    for index in reversed(range(len(model.graph.node))):
        node = model.graph.node[index]
        plain = node.op_type == "Constant" and not node.domain and [item.name for item in node.attribute] == ["value"]
        if plain and node.output[0] not in outputs:
            model.graph.initializer.append(node.attribute[0].t)
            model.graph.initializer[-1].name = node.output[0]
            del model.graph.node[index]
            lifted += 1
    return lifted


def save(model: ModelProto, target: Path, *, large: bool = False) -> None:
    """Write `model`; large weights go to one file beside it."""
    location = target.name + DATA_SUFFIX if large else None
    onnx.save_model(model, str(target), save_as_external_data=large, location=location)
