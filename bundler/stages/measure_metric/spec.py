"""What `measure_metric` takes and finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bundler.model.stage import StageSpec

COMMAND_SECONDS = 3000.0
"""For one call of a command."""

SPEC = StageSpec(
    name="measure_metric",
    title="Measure with your own metric",
    inputs=("model", "golden", "metric?"),
    produces=None,
    packages=("onnxruntime", "numpy"),
    time_limit=4 * COMMAND_SECONDS,
    volatile=True,
)
"""`golden` is any set with recorded outputs; `metric` is a Python file.

Facts: `value` (of the model's answers), `reference` (of the recorded ones, as if the untouched model had given them
now), `samples`. A metric that has the same value for the answers to other samples is a warning.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`python` is a function of the file `metric`, or `command` is a program with its arguments, in which `{inputs}`,
    `{reference}` and `{answers}` stand for folders. The others say how the session is opened, as those of `compare`.
    """

    python: str = ""
    command: tuple[str, ...] = ()
    providers: tuple[Any, ...] = ()
    session: Mapping[str, Any] = field(default_factory=dict)
    session_config: Mapping[str, str] = field(default_factory=dict)
    disabled_optimizers: tuple[str, ...] = ()
