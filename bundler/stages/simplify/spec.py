"""Inputs, facts and options of the stage `simplify`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from bundler.model.stage import StageSpec

Tool = Literal["onnxscript", "onnxslim", "onnxsim", "onnxoptimizer"]
TOOLS: tuple[Tool, ...] = get_args(Tool)
"""The simplifiers. Each has a locked environment and a module in `tools` with its name."""

SPEC = StageSpec(
    name="simplify",
    title="Simplify",
    inputs=("model",),
    produces="model",
    packages=("onnx", "onnxscript", "onnx-ir", "onnxslim", "onnxsim", "onnxoptimizer"),
    changes_model=True,
    optional=True,
    time_limit=1800.0,
    least_time=900.0,
)
"""Facts: `tool`, `nodes_before`, `nodes_after`, `operators` (count by name, after).

The default was chosen by measurement on the 1884 single-operator models of onnx 1.23, of which ONNX Runtime 1.31 runs
1368, and on four real networks. They had 12,055 nodes before; "refused" is an error, and the plan goes on without it:

| tool | version | wrong | crashed | refused | nodes left | real networks |
|---|---|---|---|---|---|---|
| onnxscript | 0.7.2 | 0 | 0 | 1 | 5,060 | equal to the bit |
| onnxsim | 0.8.1 | 0 | 0 | 1 | 5,287 | equal but for rounding |
| onnxslim | 0.1.98 | 0 | 0 | 18 | 7,264 | equal but for rounding |
| onnxoptimizer | 0.4.2 | 2 (group normalisation) | 1 | 5 | 8,728 | equal but for rounding |

Where ONNX Runtime itself optimises, none reduced size or latency (0.94 to 1.01 of the original model's), so profiles
request one only where another compiler reads the graph. onnxsim folds constants with ONNX Runtime, so its environment
contains it. All wrote equal bytes for every hash seed of the process.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`tool` is the simplifier; the step runs in the environment with its name."""

    tool: Tool = "onnxscript"
