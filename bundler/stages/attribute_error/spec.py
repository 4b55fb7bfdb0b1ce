"""Inputs, facts and options of the stage `attribute_error`."""

from __future__ import annotations

from dataclasses import dataclass

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="attribute_error",
    title="Find the nodes that lose the accuracy",
    inputs=("model", "changed", "samples"),
    produces=None,
    packages=("onnxruntime", "onnx", "numpy"),
)
"""`model` is the one before the step that lost the accuracy, `changed` the one after it.

Facts: `tensors`, the worst first, each with `tensor`, `node` and `operator` (of the model before), `kind` (`activation`
or `weight`), `sqnr_db` (None where the changed model outputs NaN or infinity) and `remedy` (nodes that must keep their
precision for this error to vanish); `compared` (number of compared tensors), `samples`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Limits: `samples` that are run, and `most`, the tensors that are reported."""

    samples: int = 4
    most: int = 20
