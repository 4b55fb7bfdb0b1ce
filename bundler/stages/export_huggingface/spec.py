"""Inputs, facts and options of the stage `export_huggingface`."""

from __future__ import annotations

from dataclasses import dataclass

from bundler.model.stage import StageSpec

ENVIRONMENT = "optimum"
FETCHER = "hub"
"""The environment that fetches a model: small, so that a wrong name is known before PyTorch is installed."""
"""The locked environment in which the stage runs; it isolates torch."""

SPEC = StageSpec(
    name="export_huggingface",
    title="Export to ONNX",
    inputs=("source",),
    produces="model",
    packages=("optimum", "optimum-onnx", "torch", "transformers", "tokenizers", "safetensors", "onnx", "onnxruntime"),
    time_limit=4 * 3600.0,
)
"""The role `source` is a model's `config.json`; its weights lie beside it.

Facts: `task`, `task_given`, `architecture`, `model_type`, `opset`, `parameters` (how many numbers), `inputs` and
`outputs` (name, element type, shape; a string there is a dynamic dimension), `fixed` (dimensions that Optimum declares
dynamic and that accept one size only, with that size), `reference` (by output: `max_absolute` and
`max_relative`, the largest difference from PyTorch's output, absolute and as a share of its largest value),
`trials` (number of seeded inputs), `preprocessing` (files beside the model that an application requires),
`unused` (number of the checkpoint's weights that the task does not use), `model_id` and `revision`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`model_id` and `revision` are the origin of the folder; nothing is fetched here. `task` is one of Optimum's, or
    `auto`: that of the architecture in the configuration. `opset` 0 selects Optimum's default.
    """

    model_id: str = ""
    revision: str = ""
    task: str = "auto"
    opset: int = 0
    dtype: str = "fp32"
