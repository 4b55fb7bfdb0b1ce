"""Inputs, facts and options of the stage `measure_metric`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bundler.model.stage import StageSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The metric of the model's outputs, and of the recorded ones (`reference`), over all `samples`."""

    value: float
    reference: float
    samples: int


COMMAND_SECONDS = 3000.0
"""Time limit for one call of a command."""

SPEC = StageSpec(
    name="measure_metric",
    title="Measure with your metric",
    inputs=("model", "golden", "metric?"),
    produces=None,
    packages=("onnxruntime", "numpy"),
    time_limit=4 * COMMAND_SECONDS,
    volatile=True,
    facts=Facts,
)
"""`golden` is any set with recorded outputs; `metric` is a Python file. A metric with the same value for the outputs of
other samples is a warning.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`python` is a function of the file `metric`, or `command` is a program with its arguments, in which `{inputs}`,
    `{reference}` and `{answers}` are replaced by folders. The others define the session, as in `compare`.
    """

    python: str = ""
    command: tuple[str, ...] = ()
    providers: tuple[Any, ...] = ()
    session: Mapping[str, Any] = field(default_factory=dict)
    session_config: Mapping[str, str] = field(default_factory=dict)
    disabled_optimizers: tuple[str, ...] = ()
