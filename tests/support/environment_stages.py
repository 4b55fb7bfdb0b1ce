"""Run one stage through the executor, in a worker of the locked environment that a plan would give it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bundler.environments.registry import Environments
from bundler.execution.cache import open_cache
from bundler.execution.executor import Executor
from bundler.execution.sources import digest_source
from bundler.model.events import Reporter, ignore
from bundler.model.plan import Step
from bundler.model.results import StepOutcome


@dataclass(slots=True)
class StageRunner:
    """`environments` is where tool environments are kept; every call has a cache of its own below `folder`, so that
    nothing is recalled.
    """

    environments: Environments
    folder: Path
    calls: int = field(default=0)

    def __call__(self, stage: str, environment: str, inputs: Mapping[str, Path], **options: Any) -> StepOutcome:
        """What the stage answered; the files stay. Raises what it raised; an optional stage that failed has a warning,
        no facts, and the path of its input.
        """
        self.calls += 1
        step = Step(
            id=stage, stage=stage, inputs={role: role for role in inputs}, options=options, environment=environment
        )
        with (
            open_cache(str(self.folder / f"cache-{self.calls}")) as cache,
            Executor(cache, environments=self.environments) as executor,
        ):
            sources = {role: digest_source(path, _beside(path), cache) for role, path in inputs.items()}
            return executor.execute((step,), sources, Reporter(ignore, "test"))[stage]


def _beside(path: Path) -> list[Path]:
    """What belongs to a sample set, or to a model with external data: all that stands below its folder."""
    return sorted(item for item in path.parent.rglob("*") if item.is_file() and item != path)
