"""Inputs, facts and options of the stage `run_pipeline`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bundler.model.stage import StageSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Of how many `samples` the answer was `equal` to the original models', within the tolerance. `max_absolute` is the
    largest difference of two numbers at the same place, `differences` the first few that count, in words. Components
    that no sample called are `uncalled`; of those that are `unnoticed` altered outputs changed no answer. The metric is
    `value`, and `reference` for the original models' answers; None without one.
    """

    samples: int
    equal: int
    max_absolute: float
    differences: tuple[str, ...]
    uncalled: tuple[str, ...] = ()
    unnoticed: tuple[str, ...] = ()
    value: float | None = None
    reference: float | None = None


SPEC = StageSpec(
    name="run_pipeline",
    title="Run your pipeline",
    inputs=("function", "samples", "metric?"),
    produces=None,
    packages=("onnxruntime", "numpy"),
    volatile=True,
    facts=Facts,
)
"""`function` is a Python file, `samples` a folder, of which each file is a sample: the arrays of an `.npz`, else the
file's path; `metric` is a Python file. For each component `original.NAME` is the model as it was given and `model.NAME`
what the bundle ships; `golden.NAME` is the golden set of one with state, which says where its streams begin.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentOptions:
    """How a component is called: names of its `inputs` and `outputs` in Python, each with that in the model, in order.
    The others say how its session is created, as in `compare`.
    """

    name: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    providers: tuple[Any, ...] = ()
    session: Mapping[str, Any] = field(default_factory=dict)
    session_config: Mapping[str, str] = field(default_factory=dict)
    disabled_optimizers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """`entry` names the function in its file, `metric` that in its own, if any. Two numbers are equal if they differ by
    no more than `absolute` and `relative` times the original's.
    """

    entry: str
    components: tuple[ComponentOptions, ...]
    absolute: float
    relative: float
    metric: str = ""
