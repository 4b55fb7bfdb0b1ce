"""What `simplify` takes and makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from bundler.model.stage import StageSpec

Tool = Literal["onnxscript", "onnxslim", "onnxsim", "onnxoptimizer"]
TOOLS: tuple[Tool, ...] = get_args(Tool)
"""The simplifiers; each has a locked environment and a module in `tools` of its name."""

SPEC = StageSpec(
    name="simplify",
    title="Simplify",
    inputs=("model",),
    produces="model",
    packages=("onnx", "onnxscript", "onnx-ir", "onnxslim", "onnxsim", "onnxoptimizer"),
    changes_model=True,
    optional=True,
    time_limit=1800.0,
)
"""Facts: `tool`, `nodes_before`, `nodes_after`, `operators` (count by name, after).

The default was chosen by trial on 1884 single-operator models and on real ones: of five, onnxscript's optimiser was
the only one with no wrong, no unloadable and no crashed result, and every real model's outputs stayed equal to the bit.
Where ONNX Runtime itself optimises, no simplifier gained size or speed, so profiles ask for it only where another
compiler reads the graph.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`tool` is the simplifier; the step runs in the environment of its name."""

    tool: Tool = "onnxscript"
