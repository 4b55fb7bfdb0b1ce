"""What builds share: one cache, one set of environments, one executor, shared by all builds of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from bundler.environments.registry import Environments
from bundler.environments.sandbox import Sandbox, find_sandbox
from bundler.execution.cache import Cache, open_cache
from bundler.execution.executor import Executor
from bundler.model.cache import CacheChoice
from bundler.model.codec import decode
from bundler.model.events import Listener
from bundler.model.measurement import USUAL, Timing
from bundler.model.results import Comparison

if TYPE_CHECKING:
    from bundler.emitters.contract import ProofRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The shared means of a call."""

    cache: Cache
    environments: Environments
    executor: Executor
    sandbox: Sandbox | None = None

    def request_proof(
        self,
        bundle: Path,
        listener: Listener,
        on: str | None = None,
        models: Mapping[str, Path] = MappingProxyType({}),
        timing: Timing = USUAL,
    ) -> ProofRequest:
        """What an emitter is given to run a bundle; `models` are what it is timed beside, by component."""
        from bundler.emitters.contract import ProofRequest  # noqa: PLC0415 - pydantic: a worker is started before

        return ProofRequest(
            bundle=bundle,
            cache_root=self.cache.root,
            listener=listener,
            models=models,
            on=on,
            timing=timing,
            environments=self.environments,
            sandbox=self.sandbox,
            compare=self._compare,
        )

    def _compare(self, golden: Path, outputs: Path) -> Comparison:
        facts = self.executor.call("compare_outputs", {"golden": golden, "outputs": outputs}).facts
        return decode(Comparison, facts)


@contextmanager
def open_workspace(
    cache_choice: str | CacheChoice | None = None,
    jobs: int = 2,
    pinned: Mapping[str, str] | None = None,
    *,
    sandbox: bool = False,
) -> Iterator[Workspace]:
    """Open the cache and start the executor; its workers end with the block. Raises `StageError` for a bad cache.

    `pinned` are texts of locks by environment name that count before those that ship with bundler. With
    `sandbox`, models and bundles run in it; raises `EnvironmentMissingError` where none is available.
    """
    cache = open_cache(cache_choice)
    environments = Environments(cache.root, pinned)
    found = find_sandbox(cache.scratch.folder) if sandbox else None
    with Executor(cache=cache, environments=environments, jobs=jobs, sandbox=found) as executor:
        yield Workspace(cache=cache, environments=environments, executor=executor, sandbox=found)
