"""Inputs, facts and options of the stage `compare`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bundler.model.results import Comparison
from bundler.model.stage import StageSpec

SPEC = StageSpec(
    name="compare",
    title="Compare with the golden set",
    inputs=("model", "golden"),
    produces=None,
    packages=("onnxruntime", "numpy"),
    facts=Comparison,
    least_time=900.0,
)
"""Facts: `bundler.model.results.Comparison`, encoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the session is created: as the bundle will create it, or, without options, as the golden set was recorded
    (without optimisation). `providers` are (the runtime's name, options) in order; `plugins` says, by name, the
    `library` (a Python module) with the provider and the device to `select`. With `check_providers` some nodes
    must be assigned to the first provider (to one from a plugin always).
    """

    providers: tuple[Any, ...] = ()
    session: Mapping[str, Any] = field(default_factory=dict)
    session_config: Mapping[str, str] = field(default_factory=dict)
    disabled_optimizers: tuple[str, ...] = ()
    plugins: Mapping[str, Any] = field(default_factory=dict)
    check_providers: bool = False
