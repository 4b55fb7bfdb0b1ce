"""The two libraries for fusion: `onnxruntime.transformers`, and its predecessor `onnxruntime-tools`.

`onnxruntime.transformers.optimizer.optimize_model` imports torch to find a GPU; the functions that it calls do not.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from onnx import ModelProto, helper, shape_inference

from bundler.model.errors import EnvironmentMissingError, StageError
from bundler.onnxkit.structure import PYTHON_ERRORS
from bundler.stages.fuse_transformers.spec import Options

RUNTIME_DOMAIN = "com.microsoft"
LIBRARY_ERRORS = (*PYTHON_ERRORS, shape_inference.InferenceError)
"""Errors of the fusers on a graph that they do not support."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One way to fuse: the model type, and the sizes of its attention (0: the library detects them)."""

    model_type: str
    heads: int
    hidden_size: int


def fuse(model: ModelProto, choice: Choice, options: Options, disabled: Collection[str]) -> ModelProto:
    """`model`, changed in place or replaced. Raises `LIBRARY_ERRORS`, `EnvironmentMissingError`, `StageError`."""
    # The fusers infer shapes before they declare the domain of their operators themselves.
    if all(item.domain != RUNTIME_DOMAIN for item in model.opset_import):
        model.opset_import.append(helper.make_opsetid(RUNTIME_DOMAIN, 1))
    with _silence():
        if options.backend == "onnxruntime-tools":
            return _fuse_with_tools(model, choice, options, disabled)
        return _fuse_with_runtime(model, choice, options, disabled)


def _fuse_with_runtime(model: ModelProto, choice: Choice, options: Options, disabled: Collection[str]) -> ModelProto:
    from onnxruntime.transformers import optimizer  # noqa: PLC0415 (absent from the environment of onnxruntime-tools)

    settings = optimizer.FusionOptions(choice.model_type)
    _leave_out(settings, disabled)
    settings.enable_gelu_approximation = options.gelu_approximation
    settings.use_multi_head_attention = options.multi_head_attention
    _set_mask(settings, "end" if options.packed else options.mask)
    fused = optimizer.optimize_by_fusion(model, choice.model_type, choice.heads, choice.hidden_size, settings)
    if options.packed:
        _pack(fused)
    result: ModelProto = fused.model
    return result


def _pack(fused: Any) -> None:
    if not hasattr(fused, "convert_to_packing_mode"):
        raise StageError("only BERT-class encoders can be packed", hint="remove `packed`")
    fused.convert_to_packing_mode(True)
    if not any(node.op_type.startswith("Packed") for node in fused.model.graph.node):
        hint = "packing requires fused attention with one mask for all layers; remove `packed`"
        raise StageError("no attention could be packed", hint=hint)


def _fuse_with_tools(model: ModelProto, choice: Choice, options: Options, disabled: Collection[str]) -> ModelProto:
    try:
        optimizer = importlib.import_module("onnxruntime_tools.transformers.optimizer")
    except ImportError as cause:
        hint = "run the stage in the environment `onnxruntime-tools`, or use the backend `onnxruntime`"
        raise EnvironmentMissingError("the backend onnxruntime-tools is not in this environment", hint=hint) from cause
    settings = optimizer.BertOptimizationOptions(choice.model_type)
    _leave_out(settings, disabled)
    settings.enable_gelu_approximation = options.gelu_approximation
    if options.mask == "none":
        settings.disable_attention_mask()
    else:
        settings.use_raw_attention_mask(options.mask == "raw")
    fused = optimizer.MODEL_CLASSES[choice.model_type][0](model, choice.heads, choice.hidden_size)
    fused.optimize(settings)
    result: ModelProto = fused.model
    return result


def _leave_out(settings: Any, disabled: Collection[str]) -> None:
    for name in disabled:
        if hasattr(settings, f"enable_{name}"):
            setattr(settings, f"enable_{name}", False)


def _set_mask(settings: Any, mask: str) -> None:
    """The library's own default is `end` for BERT, none for images, `raw` for all others."""
    if mask == "end":
        settings.use_raw_attention_mask(False)
    elif mask == "none":
        settings.disable_attention_mask()
    elif settings.attention_mask_format == 0:
        settings.use_raw_attention_mask(True)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Silence the libraries, which log and print every fusion that does not match."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)
