"""What `compare` takes and finds."""

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
"""Its facts are `bundler.model.results.Comparison`, encoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the session is opened: as the bundle will open it, or, where nothing is given, as the golden set was recorded
    (nothing optimised). `providers` are (the runtime's name, options) in order; `plugins` says, by such a name, which
    `library` (a Python module) carries the provider and which device to `select`. With `check_providers` the first
    provider must take some of the model (one from a plugin always must).
    """

    providers: tuple[Any, ...] = ()
    session: Mapping[str, Any] = field(default_factory=dict)
    session_config: Mapping[str, str] = field(default_factory=dict)
    disabled_optimizers: tuple[str, ...] = ()
    plugins: Mapping[str, Any] = field(default_factory=dict)
    check_providers: bool = False
