"""Inputs, facts and options of the stage `time_model`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="time_model",
    title="Time the model",
    inputs=("model", "baseline", "golden"),
    produces=None,
    packages=("onnxruntime", "numpy"),
)
"""Facts: `seconds` and `baseline_seconds` (medians of one call), `ratio` (median over rounds of the model's time to the
baseline's in the same round), `low` and `high` (10th and 90th percentile of it), `rounds`. The only stage whose facts
are times: they select a model and are never written into a bundle.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How both sessions are created (as in `compare`), and for how many seconds they run alternately."""

    session: Mapping[str, Any] = field(default_factory=dict)
    baseline_session: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 4.0
