"""Inputs, facts and options of the stage `attribute_error`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bundler.model.stage import StageSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class LossyTensor:
    """A tensor of the model before the step, with its `node` and `operator` there. `sqnr_db` is None where the changed
    model outputs NaN or infinity; `remedy` are the nodes that must keep their precision for this error to vanish.
    """

    tensor: str
    node: str
    operator: str
    kind: Literal["activation", "weight"]
    sqnr_db: float | None
    remedy: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The tensors that lose the most, the worst first, of all that were `compared` over `samples`."""

    tensors: tuple[LossyTensor, ...]
    compared: int
    samples: int


SPEC = StageSpec(
    name="attribute_error",
    title="Find the nodes that lose the accuracy",
    inputs=("model", "changed", "samples"),
    produces=None,
    packages=("onnxruntime", "onnx", "numpy"),
    facts=Facts,
)
"""`model` is the one before the step that lost the accuracy, `changed` the one after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Limits: `samples` that are run, and `most`, the tensors that are reported."""

    samples: int = 4
    most: int = 20
