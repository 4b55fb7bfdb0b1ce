"""Measure the noise of a QDQ model's tensors: the reference's `qdq_loss_debug`, one sample at a time.

The reference keeps every activation of every sample of both models. A signal-to-noise ratio is a ratio of two sums
of squares, and the sums can be kept instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, NodeProto, ValueInfoProto, numpy_helper
from onnxruntime.quantization.quant_utils import DEQUANT_OUTPUT_SUFFIX, QUANT_INPUT_SUFFIX, TENSOR_NAME_QUANT_SUFFIX

from bundler.onnxkit.golden import Sample
from bundler.onnxkit.quantization.outcome import DEQUANTIZE
from bundler.onnxkit.quantization.samples import run_sample
from bundler.onnxkit.sessions import SessionSettings, open_session
from bundler.onnxkit.structure import integer_attribute, read_structure

_POSTFIXES: Final = (DEQUANT_OUTPUT_SUFFIX, DEQUANT_OUTPUT_SUFFIX + "_1")
_UNOPTIMIZED: Final = SessionSettings(session={"graph_optimization_level": "none"})
_MIN_NORM: Final = float(np.finfo("float").eps)
"""Norms that the reference treats as zero."""


@dataclass(slots=True)
class Noise:
    """Sums of squares over all added values."""

    signal: float = 0.0
    noise: float = 0.0

    def add(self, clean: np.ndarray, noisy: np.ndarray) -> None:
        """Add two arrays of one size."""
        left = clean.astype(np.float64, copy=False).ravel()
        difference = left - noisy.ravel()
        self.signal += float(left @ left)
        self.noise += float(difference @ difference)

    @property
    def decibels(self) -> float:
        """The ratio of signal to quantisation noise, as computed by the reference's own function."""
        return 20 * math.log10(max(math.sqrt(self.signal), _MIN_NORM) / max(math.sqrt(self.noise), _MIN_NORM))


def matched_tensors(float_model: ModelProto, quantized: ModelProto) -> dict[str, tuple[str, str]]:
    """Names in the quantised model, before and after its pair, of each tensor of the original model."""
    known = _values(float_model)
    present = _values(quantized)
    matched = {}
    for name in sorted(known & present):
        if name + QUANT_INPUT_SUFFIX in present:
            matched[name] = (name + QUANT_INPUT_SUFFIX, name)
        for suffix in _POSTFIXES:
            if name not in matched and name + suffix in present:
                matched[name] = (name, name + suffix)
    return matched


def _values(model: ModelProto) -> set[str]:
    return {name for node in model.graph.node for name in node.output} | {item.name for item in model.graph.input}


def activation_noise(
    float_path: Path, quantized_path: Path, samples: Iterable[Sample], scratch: Path
) -> dict[str, Noise]:
    """The noise of the Q/DQ pair of each quantised activation (the reference's `qdq_err`), by the original model's
    names. Raises `StageError`.
    """
    quantized = onnx.load(quantized_path)
    matched = matched_tensors(read_structure(float_path), quantized)
    names = [name for pair in matched.values() for name in pair]
    session = _open(quantized, names, scratch / "noise-quantized.onnx")
    found = {name: Noise() for name in matched}
    for sample in samples:
        values = dict(zip(names, run_sample(session, sample, names), strict=True))
        for name, (before, after) in matched.items():
            found[name].add(values[before], values[after])
    return found


def _open(model: ModelProto, names: list[str], target: Path) -> onnxruntime.InferenceSession:
    present = {output.name for output in model.graph.output} | {item.name for item in model.graph.input}
    model.graph.output.extend(ValueInfoProto(name=name) for name in names if name not in present)
    model.graph.output.extend(item for item in model.graph.input if item.name in names)
    onnx.save_model(model, str(target), save_as_external_data=True, location=target.name + ".data")
    return open_session(target, _UNOPTIMIZED)


def weight_noise(float_path: Path, quantized_path: Path) -> dict[str, Noise]:
    """The noise of each quantised weight, by the original model's names."""
    plain = {item.name: item for item in onnx.load(float_path).graph.initializer}
    found = {}
    for name, values in _dequantized(onnx.load(quantized_path)):
        if name in plain:
            found[name] = Noise()
            found[name].add(numpy_helper.to_array(plain[name]), values)
    return found


def _dequantized(model: ModelProto) -> Iterator[tuple[str, np.ndarray]]:
    constants = {item.name: item for item in model.graph.initializer}
    for node in model.graph.node:
        name = node.input[0] if node.op_type == DEQUANTIZE else ""
        if name in constants and name.endswith(TENSOR_NAME_QUANT_SUFFIX):
            yield name.removesuffix(TENSOR_NAME_QUANT_SUFFIX), _dequantize(node, constants)


def _dequantize(node: NodeProto, constants: Mapping[str, Any]) -> np.ndarray:
    arrays = [numpy_helper.to_array(constants[name]) for name in node.input if name]
    values, scale = arrays[0].astype(np.float64), arrays[1].astype(np.float64)
    zero = arrays[2].astype(np.float64) if len(arrays) > 2 else np.zeros_like(scale)  # noqa: PLR2004 - the third input
    shape = [1] * values.ndim
    if scale.size > 1:
        shape[integer_attribute(node, "axis", 1) % values.ndim] = scale.size
    result: np.ndarray = (values - zero.reshape(shape)) * scale.reshape(shape)
    return result
