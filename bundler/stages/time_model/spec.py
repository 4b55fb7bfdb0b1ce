"""Inputs, facts and options of the stage `time_model`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bundler.model.stage import StageSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`seconds` and `baseline_seconds` are medians of one call; `ratio` is the median over `rounds` of the model's time
    to the baseline's in the same round, `low` and `high` its 10th and 90th percentile. `processor_ratio` is the median
    of the same for the time of all processors together.

    From seven rounds on, `low` to `high` is also a confidence interval of the median: at least 97 % by order
    statistics, as long as rounds are independent.
    """

    seconds: float
    baseline_seconds: float
    ratio: float
    low: float
    high: float
    processor_ratio: float
    rounds: int


SPEC = StageSpec(
    name="time_model",
    title="Time the model",
    inputs=("model", "baseline", "golden"),
    produces=None,
    packages=("onnxruntime", "numpy"),
    facts=Facts,
)
"""The only stage whose facts are times: they select a model and are never written into a bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How both sessions are created (as in `compare`), and for how many seconds at most they run alternately."""

    session: Mapping[str, Any] = field(default_factory=dict)
    baseline_session: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 2.0
