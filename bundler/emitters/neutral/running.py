"""Runs one comparison with the golden set in a worker, without the cache."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bundler.devices.contract import Facts
from bundler.emitters.contract import ProofRequest
from bundler.environments.registry import Environment, Environments
from bundler.environments.sandbox import Sandbox
from bundler.execution.calls import StageCall, call_stage
from bundler.execution.limits import limit_seconds
from bundler.execution.pool import WorkerPool
from bundler.model.codec import decode
from bundler.model.events import Reporter
from bundler.model.paths import real_path
from bundler.model.results import Comparison
from bundler.model.runtime import RuntimeComponent, RuntimeVariant
from bundler.stages.registry import find_stage
from bundler.verification.streams import INDEX

STAGE = "compare"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where the comparisons of one bundle run: on a device with these `facts`. `build` is what messages call it."""

    root: Path
    environments: Environments
    pool: WorkerPool
    reporter: Reporter
    facts: Facts
    sandbox: Sandbox | None = None

    def resolve(self, name: str) -> Environment:
        """The environment, made if necessary. Raises `EnvironmentMissingError`."""
        return self.environments.resolve(name, find_stage(STAGE).packages, self.reporter)

    def compare(
        self, component: RuntimeComponent, variant: RuntimeVariant, environment: Environment, plugin: str = ""
    ) -> Comparison:
        """The variant's outputs compared with its component's golden set; `plugin` has its first provider in
        `environment`.

        Raises `StageError`, also when that provider does not come up.
        """
        inputs = {"model": self.root / variant.model, "golden": self.root / component.golden / INDEX}
        size = sum(path.stat().st_size for path in inputs.values())
        with self.pool.lease(environment, keep=False, sandbox=self.sandbox) as worker:
            call = StageCall(
                stage=STAGE,
                inputs=inputs,
                options=session_options(variant, plugin),
                output=worker.folder,
                folder=worker.folder,
                seconds=limit_seconds(find_stage(STAGE), size),
            )
            return decode(Comparison, call_stage(worker, call, _ignore).facts)


@contextlib.contextmanager
def open_bench(request: ProofRequest, environments: Environments, facts: Facts, build: str) -> Iterator[Bench]:
    """A bench on the device of these `facts`, which has our environments; its workers end with the block."""
    pool = WorkerPool(environments.root / "logs")
    root, sandbox = real_path(request.bundle), request.sandbox
    try:
        yield Bench(
            root=root,
            environments=environments,
            pool=pool,
            reporter=Reporter(request.listener, build),
            facts=facts,
            sandbox=sandbox.showing((environments.root, root)) if sandbox else None,
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


def _ignore(fraction: float, text: str) -> None:
    del fraction, text
