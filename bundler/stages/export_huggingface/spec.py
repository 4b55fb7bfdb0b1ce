"""What `export_huggingface` takes and makes."""

from __future__ import annotations

from dataclasses import dataclass

from bundler.model.stage import StageSpec

ENVIRONMENT = "optimum"
"""The locked environment in which the stage runs; torch is in no other's way there."""

SPEC = StageSpec(
    name="export_huggingface",
    title="Export to ONNX",
    inputs=("source",),
    produces="model",
    packages=("optimum", "optimum-onnx", "torch", "transformers", "tokenizers", "safetensors", "onnx", "onnxruntime"),
    time_limit=4 * 3600.0,
)
"""The role `source` is a model's `config.json`; its weights stand beside it.

Facts: `task`, `task_given`, `architecture`, `model_type`, `opset`, `parameters` (how many numbers), `inputs` and
`outputs` (name, element type, shape; a text there is a dynamic dimension), `fixed` (dimensions that Optimum calls
dynamic and that take one size only, with that size), `reference` (by output: `max_absolute` and
`max_relative`, the largest difference from what PyTorch answers, as it is and as a share of the largest answer),
`trials` (how many seeded inputs that is over), `preprocessing` (files beside the model that an application needs),
`unused` (how many weights of the checkpoint the task leaves out), `model_id` and `revision`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`model_id` and `revision` say where the folder came from; nothing is fetched here. `task` is one of Optimum's, or
    `auto`: the one of the architecture that the configuration names. `opset` 0 takes what Optimum holds best.
    """

    model_id: str = ""
    revision: str = ""
    task: str = "auto"
    opset: int = 0
    dtype: str = "fp32"
