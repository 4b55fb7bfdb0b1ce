"""Run one comparison with the golden set in a worker, beside no build: nothing of it is recalled or remembered."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bundler.environments.registry import Environment, Environments
from bundler.environments.sandbox import Sandbox
from bundler.execution.limits import limit_seconds
from bundler.execution.pool import Worker, WorkerPool
from bundler.execution.stage_sources import stage_packages
from bundler.model.codec import decode
from bundler.model.errors import error_from_json
from bundler.model.events import Listener
from bundler.model.results import Comparison
from bundler.model.runtime import RuntimeVariant
from bundler.model.stage import StageResult
from bundler.stages.registry import find_stage, run_module

STAGE = "compare"
GOLDEN = "golden/index.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where the comparisons of one bundle run. `build` is what messages call it."""

    root: Path
    environments: Environments
    pool: WorkerPool
    listener: Listener
    build: str
    sandbox: Sandbox | None = None

    def resolve(self, name: str) -> Environment:
        """The environment, made where it is not here yet. Raises `EnvironmentMissingError`."""
        return self.environments.resolve(name, find_stage(STAGE).packages, self.listener, self.build)

    def compare(self, variant: RuntimeVariant, environment: Environment, plugin: str = "") -> Comparison:
        """The variant's answers beside the golden ones; `plugin` is what carries its first provider in `environment`.

        Raises `StageError`, also when that provider does not come up.
        """
        with self.pool.lease(environment, keep=False, sandbox=self.sandbox) as worker:
            return _call(worker, self._request(variant, worker.folder, plugin))

    def _request(self, variant: RuntimeVariant, folder: Path, plugin: str) -> dict[str, Any]:
        inputs = {"model": self.root / variant.model, "golden": self.root / GOLDEN}
        return {
            "stage": STAGE,
            "module": run_module(STAGE),
            "packages": stage_packages(STAGE),
            "inputs": {role: str(path) for role, path in inputs.items()},
            "options": session_options(variant, plugin),
            "output": str(folder),
            "folder": str(folder),
        }


@contextlib.contextmanager
def open_bench(
    root: Path, environments: Environments, listener: Listener, build: str, sandbox: Sandbox | None = None
) -> Iterator[Bench]:
    """A bench whose workers end with the block."""
    pool = WorkerPool(environments.root / "logs")
    try:
        yield Bench(
            root=root.resolve(),
            environments=environments,
            pool=pool,
            listener=listener,
            build=build,
            sandbox=sandbox.showing((environments.root, root.resolve())) if sandbox else None,
        )
    finally:
        pool.close()


def session_options(variant: RuntimeVariant, plugin: str = "") -> dict[str, Any]:
    """The options of the stage that open a session as the device will; `plugin` counts where the device's runtime has
    the first provider in itself.
    """
    first = variant.providers[0]
    plugins = {
        entry.name: {"library": library, "select": dict(entry.select)}
        for entry in variant.providers
        if (library := entry.library or (plugin if entry is first else ""))
    }
    options: dict[str, Any] = {
        "providers": [[entry.name, dict(entry.options)] for entry in variant.providers],
        "session": dict(variant.session),
        "session_config": dict(variant.session_config),
        "disabled_optimizers": list(variant.disabled_optimizers),
    }
    return {**options, "plugins": plugins, "check_providers": variant.requires.compiled is not None}


def _call(worker: Worker, request: Mapping[str, Any]) -> Comparison:
    size = sum(Path(path).stat().st_size for path in request["inputs"].values())
    seconds = limit_seconds(find_stage(STAGE), size)
    answer = worker.wait(worker.post(request), STAGE, seconds, _ignore)
    if "error" in answer:
        raise error_from_json(answer["error"])
    return decode(Comparison, decode(StageResult, answer["result"]).facts)


def _ignore(fraction: float, text: str) -> None:
    del fraction, text
