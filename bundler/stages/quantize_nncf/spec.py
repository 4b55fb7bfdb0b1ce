"""Inputs, facts and options of the stage `quantize_nncf`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="quantize_nncf",
    title="Quantise with NNCF",
    inputs=("model", "samples"),
    produces="model",
    packages=("onnx", "onnxruntime", "nncf", "numpy"),
    changes_model=True,
    time_limit=7200.0,
)
"""Facts: `samples`, `opset` (of the result), `nodes_before`, `nodes_after`, `operators` (count by name, after),
`quantized` (how many nodes compute on quantised values, by operator), `bytes` (of the result).

The result is an ordinary QDQ model for ONNX Runtime's CPU as well as for OpenVINO; existing nodes and tensors keep
their names. NNCF wrote equal bytes in every trial, for every hash seed of the process.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of `nncf.quantize`; its subset is the whole set of samples.

    `preset` is `performance` (symmetric activations) or `mixed` (asymmetric ones); `auto` is NNCF's own choice:
    `mixed` for a transformer, else `performance`. Without `fast_bias_correction` the slower correction keeps the
    activations of a fifth of the samples in memory; with it, memory does not grow with the set (500 images of
    224 by 224: 153 MB against 373). `exclude_nodes` are names of nodes of the main graph; a node
    without a name is called `<operator>_nncf_<position>`, as NNCF does. `exclude_operators` are ONNX operators.
    `preprocess` lets ONNX Runtime fold constants and fuse batch normalisation first (level basic); without it, weights
    in `Constant` nodes stay float. `raise_opset` converts a model below opset 13, which has no scales by channel;
    without it such a model is rejected.
    """

    preset: Literal["auto", "performance", "mixed"] = "auto"
    model_type: Literal["none", "transformer"] = "none"
    target: Literal["any", "cpu", "gpu", "npu"] = "any"
    fast_bias_correction: bool = True
    exclude_nodes: tuple[str, ...] = ()
    exclude_operators: tuple[str, ...] = ()
    preprocess: bool = True
    raise_opset: bool = True
