"""A cache, the misbehaving stages, and a short way to execute steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from bundler.execution.cache import Cache, open_cache
from bundler.execution.executor import Executor
from bundler.execution.sources import Source, digest_source
from bundler.model.events import Event, Reporter
from bundler.model.plan import Step
from bundler.model.results import StepOutcome
from tests.support.stages_faults.register import write_distribution

ROOT = Path(__file__).parents[3]
StartBuild = Callable[..., subprocess.Popen[str]]
Execute = Callable[..., dict[str, StepOutcome]]


@pytest.fixture(autouse=True, scope="session")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("distribution")
    write_distribution(folder)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture
def start_build(distribution: Path, tmp_path: Path, model: Path) -> Iterator[StartBuild]:
    """Start a build in a process of its own."""
    processes: list[subprocess.Popen[str]] = []

    def start(stage: str, **options: object) -> subprocess.Popen[str]:
        module = "tests.support.stages_faults.build_once"
        command = [sys.executable, "-m", module, str(tmp_path / "cache"), str(model), stage, json.dumps(options)]
        environ = {**os.environ, "PYTHONPATH": str(distribution)}
        process = subprocess.Popen(
            command, cwd=ROOT, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    with open_cache(str(tmp_path / "cache")) as cache:
        yield cache


@pytest.fixture
def executor(cache: Cache) -> Iterator[Executor]:
    with Executor(cache, jobs=2) as executor:
        yield executor


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "work" / "model.onnx"
    path.parent.mkdir()
    path.write_bytes(b"a model")
    return path


@pytest.fixture
def sources(model: Path, cache: Cache) -> Mapping[str, Source]:
    return {"model": digest_source(model, (), cache)}


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def execute(executor: Executor, sources: Mapping[str, Source], events: list[Event]) -> Execute:
    def run(*steps: Step) -> dict[str, StepOutcome]:
        return executor.execute(steps, sources, Reporter(events.append, "model → here"))

    return run


def step(stage: str, of: str = "model", id: str | None = None, **options: object) -> Step:  # noqa: A002
    return Step(id=id or stage, stage=stage, inputs={"model": of}, options=options)
