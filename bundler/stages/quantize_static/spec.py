"""Inputs, facts and options of the stage `quantize_static`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="quantize_static",
    title="Quantise statically",
    inputs=("model", "samples"),
    produces="model",
    packages=("onnx", "onnxruntime", "numpy", "sympy"),
    changes_model=True,
    time_limit=4 * 3600.0,
)
"""Facts: `nodes_before`, `nodes_after`, `quantized` (count by operator), `tensors` (`activations`, `weights`), `bytes`,
`calibration` (`method`, `samples`), `preprocess` (which pre-process was used), `opset`, `activation_type`,
`weight_type`, `per_channel`, `exclude_nodes` (names in the prepared model); with `keep_float`: `kept_nodes` and
`sqnr_db` (None where no output has floating-point numbers).
"""
ActivationType = Literal["uint8", "int8", "uint16", "int16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`rules` names a provider for which the reference has its own configuration and pre-process (a module of
    `onnxruntime.quantization.execution_providers`); empty: none. Symmetry that is None follows the types.

    `operators` to quantise (empty: all that the reference supports), without `exclude_operators`, the nodes named
    `exclude_nodes` and convolutions of the kinds `exclude_structures`, which gain little from int8
    (`bundler.onnxkit.quantization.structures`). `preprocess` runs the reference's pre-process first, in which
    `shapes` selects shape inference: by ONNX ("plain"), with symbolic inference before it (slow), or symbolic only when
    tensors to be quantised have no types otherwise. `raise_opset` allows a higher opset when the format requires it.
    `reduce_range` uses 7 bits for weights, for x86 without VNNI. `percentile` applies to that calibration method.

    `keep_float` "auto" excludes as many of the worst nodes as needed for the outputs of some calibration samples to
    reach `least_sqnr_db`. `extra` are the reference's `extra_options`.
    """

    format: Literal["qdq", "qoperator"] = "qdq"
    calibration: Literal["minmax", "entropy", "percentile", "distribution"] = "minmax"
    activation_type: ActivationType = "uint8"
    weight_type: ActivationType = "int8"
    per_channel: bool = False
    reduce_range: bool = False
    symmetric_activations: bool | None = None
    symmetric_weights: bool | None = None
    percentile: float | None = None
    rules: str = ""
    operators: tuple[str, ...] = ()
    exclude_operators: tuple[str, ...] = ()
    exclude_nodes: tuple[str, ...] = ()
    exclude_structures: tuple[Literal["depthwise", "squeeze", "narrow"], ...] = ()
    preprocess: bool = True
    shapes: Literal["auto", "plain", "symbolic"] = "auto"
    raise_opset: bool = True
    keep_float: Literal["none", "auto"] = "none"
    least_sqnr_db: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
