"""A cache, the misbehaving stages, and a short way to execute steps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from bundler.execution.cache import Cache, open_cache
from bundler.execution.executor import Executor
from bundler.execution.sources import Source, digest_source
from bundler.model.events import Event
from bundler.model.plan import Step
from bundler.model.results import StepOutcome
from tests.support.stages_faults.register import write_distribution

Execute = Callable[..., dict[str, StepOutcome]]


@pytest.fixture(autouse=True, scope="session")
def _stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("distribution")
    write_distribution(folder)
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))


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
        return executor.execute(steps, sources, events.append, "model → here")

    return run


def step(stage: str, of: str = "model", id: str | None = None, **options: object) -> Step:  # noqa: A002
    return Step(id=id or stage, stage=stage, inputs={"model": of}, options=options)
