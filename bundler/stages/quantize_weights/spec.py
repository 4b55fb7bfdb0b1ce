"""Inputs, facts and options of the stage `quantize_weights`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bundler.model.stage import StageSpec

ENVIRONMENT = "weight-only"
"""Contains `onnx-ir`, which the reference requires and bundler does not."""

SPEC = StageSpec(
    name="quantize_weights",
    title="Quantise weights",
    inputs=("model", "samples?"),
    produces="model",
    packages=("onnx", "onnxruntime", "onnx-ir", "numpy"),
    changes_model=True,
    time_limit=4 * 3600.0,
)
"""Facts: the options used (`algorithm`, `bits`, `block_size`, `symmetric`, `accuracy_level`), `quantized`
(count by original operator), `left` (count by reason: `excluded`, `computed` weights, `shape`, `type`,
`odd blocks`), `samples` (how many were read), `weight_bytes_before`, `weight_bytes_after`, `bytes` (all files).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`block_size` weights share one scale (16 or more, a power of two). `symmetric` weights have no zero points.

    `algorithm` is round-to-nearest, HQQ (4 bits; optimises zero points; no calibration data, no symmetric form) or
    GPTQ (4 bits; requires samples, on which it minimises the error of each layer). `accuracy_level` is the minimum
    precision of the computation (0: the runtime's choice, 1: float32, 2: float16, 3: bfloat16, 4: int8, the fastest on
    CPUs). `operators` can be MatMul, Gemm (which becomes MatMul and Add) and Gather (embedding tables; 4 bits,
    round-to-nearest, opset 21). `exclude_nodes` are nodes' names in the input model.
    """

    bits: Literal[4, 8] = 4
    block_size: int = 32
    symmetric: bool = False
    algorithm: Literal["rtn", "hqq", "gptq"] = "rtn"
    accuracy_level: Literal[0, 1, 2, 3, 4] = 0
    operators: tuple[str, ...] = ("MatMul",)
    exclude_nodes: tuple[str, ...] = ()
