"""Inputs, facts and options of the stage `fuse_transformers`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="fuse_transformers",
    title="Fuse transformer blocks",
    inputs=("model",),
    produces="model",
    packages=("onnx", "onnxruntime", "onnxruntime-tools", "sympy"),
    changes_model=True,
    time_limit=3600.0,
)
"""Facts: `backend`, `model_type`, `detected` (whether the type was found in the graph), `reasons` (one line for each
candidate), `tried` (list of {model_type, fused, attentions, problem}), `heads` and `hidden_size` (0: left to the
library), `heads_from` ("given", "structure" or "library"), `level`, `mask`, `disabled`, `fused` (count by operator),
`attentions` (in the source), `attentions_fused`, `nodes_before`, `nodes_after`, `operators` (count by name, after).

Fusion comes before quantisation: the fusers do not recognise quantised graphs, and the quantiser supports fused
operators (`Attention` becomes `QAttention`). On a CPU, ONNX Runtime does the useful fusions itself at load.
"""
Backend = Literal["onnxruntime", "onnxruntime-tools"]
Mask = Literal["raw", "end", "none"]
Level = Literal["default", "none", "basic", "extended"]

MODEL_TYPES: Final = {
    "bart": "basic", "bert": "basic", "bert_keras": "none", "bert_tf": "none", "clip": "basic", "conformer": "basic",
    "gpt2": "basic", "gpt2_tf": "none", "gpt_neox": "none", "mmdit": "basic", "phi": "none", "qwen3": "none",
    "sam2": "basic", "swin": "basic", "t5": "extended", "tnlr": "basic", "unet": "basic", "vae": "basic",
    "vit": "basic",
}  # fmt: skip
"""The library's model types, and its optimisation level before fusion for each."""
TOOLS_MODEL_TYPES: Final = ("bert", "bert_keras", "bert_tf", "gpt2", "gpt2_tf")
"""The types that `onnxruntime-tools` 1.7.0 supports."""
FUSIONS: Final = (
    "attention", "bias_add", "bias_gelu", "bias_skip_layer_norm", "bias_splitgelu", "embed_layer_norm", "gelu",
    "group_norm", "layer_norm", "nhwc_conv", "packed_kv", "packed_qkv", "qordered_matmul", "rotary_embeddings",
    "shape_inference", "skip_group_norm", "skip_layer_norm",
)  # fmt: skip
"""Fusions that can be disabled: the library's `enable_…` flags that some model type enables by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`model_type` is one of `MODEL_TYPES`, or `auto`: detected from the graph, as `heads` and `hidden_size` of 0 are.
    `gelu_approximation` replaces every GELU by FastGelu (tanh), which changes results a little. `disabled` are
    names of `FUSIONS`. `mask` is the form of the attention mask: `raw` is correct for every mask; `end` (the library's
    own default for BERT) keeps only each row's length, so that any mask but a run of ones from the left gives wrong
    results; `none` removes it. `multi_head_attention` creates MultiHeadAttention nodes, with separate weights.
    `packed` removes padding between RemovePadding and RestorePadding: for CUDA only, and implies `end`. `level` is the
    runtime's optimisation level before fusion: `default` is the library's own for the model type.
    """

    model_type: str = "auto"
    heads: int = 0
    hidden_size: int = 0
    gelu_approximation: bool = False
    disabled: tuple[str, ...] = ()
    mask: Mask = "raw"
    multi_head_attention: bool = False
    packed: bool = False
    level: Level = "default"
    backend: Backend = "onnxruntime"
