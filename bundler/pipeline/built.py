"""Components whose steps have run, and the bundle that they make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bundler.model.manifest import PipelineRecord
from bundler.model.results import StepOutcome
from bundler.model.runtime import RuntimeConfig
from bundler.pipeline.prepare import Prepared, PreparedBundle


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPart:
    """A component with the outcomes of its plan's steps by id."""

    prepared: Prepared
    outcomes: Mapping[str, StepOutcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltBundle:
    """All that is written into a bundle: `config` is its `runtime.json`, `pipeline` what the user's own answered."""

    prepared: PreparedBundle
    parts: tuple[BuiltPart, ...]
    config: RuntimeConfig
    pipeline: tuple[PipelineRecord, ...] = ()

    def measured(self) -> BuiltBundle:
        """The same as `--measure` asks for it."""
        request = replace(self.prepared.request, measure=True)
        return replace(self, prepared=replace(self.prepared, request=request))
