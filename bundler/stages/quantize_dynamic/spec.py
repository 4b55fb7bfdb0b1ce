"""Inputs, facts and options of the stage `quantize_dynamic`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="quantize_dynamic",
    title="Quantise dynamically",
    inputs=("model",),
    produces="model",
    packages=("onnx", "onnxruntime", "numpy", "sympy"),
    changes_model=True,
)
"""Facts: `nodes_before`, `nodes_after`, `quantized` (count by operator), `tensors` (`activations`, `weights`), `bytes`,
`preprocess` (which pre-process was used), `opset`, `exclude_nodes` (names in the prepared model).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`reduce_range` uses 7 bits, for x86 without VNNI. The others are those of `quantize_static`: the operators and
    nodes to quantise, the reference's pre-process with its inference of shapes, and its `extra_options`.
    """

    weight_type: Literal["int8", "uint8"] = "int8"
    per_channel: bool = False
    reduce_range: bool = False
    operators: tuple[str, ...] = ()
    exclude_operators: tuple[str, ...] = ()
    exclude_nodes: tuple[str, ...] = ()
    preprocess: bool = True
    shapes: Literal["auto", "plain", "symbolic"] = "auto"
    raise_opset: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)
