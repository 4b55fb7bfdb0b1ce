"""Workers in environments that hold nothing of ours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bundler.environments.making import interpreter_in
from bundler.environments.registry import Environment
from bundler.environments.tools import run_uv
from bundler.execution.pool import Worker, WorkerPool
from bundler.execution.stage_sources import package_folder, stage_packages
from bundler.model.errors import EnvironmentMissingError
from tests.unit.execution.conftest import ROOT


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with nothing installed."""
    place = tmp_path_factory.mktemp("bare") / "venv"
    run_uv(("venv", "--quiet", "--no-project", "--offline", "--python", sys.executable, str(place)), "make it")
    return Environment(name="bare", python=interpreter_in(place), versions={}, digest="", python_version="3.11")


def call(worker: Worker, stage: str, inputs: dict[str, str], output: Path) -> dict:
    request = {"stage": stage, "module": f"tests.support.stages_faults.{stage}.run", "packages": stage_packages(stage)}
    number = worker.post({**request, "inputs": inputs, "options": {}, "output": str(output), "folder": str(output)})
    return worker.wait(number, stage, 30, lambda fraction, text: None)  # noqa: ARG005


def test_a_stage_runs_where_bundler_is_not_installed(bare: Environment, model: Path, tmp_path: Path) -> None:
    pool = WorkerPool(tmp_path / "logs")
    with pool.lease(bare) as worker:
        answer = call(worker, "count", {"model": str(model)}, tmp_path)
    assert answer["result"]["facts"]["bytes"] == 7
    pool.close()
    assert not worker.alive


def test_nothing_of_bundlers_own_environment_leaks_in(
    bare: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(package_folder("pytest").parent))
    pool = WorkerPool(tmp_path / "logs")
    with pool.lease(bare) as worker:
        answer = call(worker, "look", {}, tmp_path)
    pool.close()
    facts = answer["result"]["facts"]
    assert facts["importable"] == {
        "bundler.model.stage": True,
        "pydantic": False,
        "onnxruntime": False,
        "pytest": False,
    }
    assert facts["telemetry_off"] is True
    assert str(ROOT) not in facts["path"]


def test_an_idle_worker_that_died_is_replaced(bare: Environment, model: Path, tmp_path: Path) -> None:
    pool = WorkerPool(tmp_path / "logs")
    with pool.lease(bare) as first:
        call(first, "count", {"model": str(model)}, tmp_path)
    first.kill()
    with pool.lease(bare) as second:
        assert second is not first
        assert call(second, "count", {"model": str(model)}, tmp_path)["result"]["facts"]["bytes"] == 7
    pool.close()


def test_a_worker_that_dies_at_its_start_is_an_error_with_its_words(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no such interpreter >&2\nexit 3\n")
    broken.chmod(0o755)
    environment = Environment(name="x", python=broken, versions={}, digest="", python_version="3.11")
    pool = WorkerPool(tmp_path / "logs")
    with (
        pool.lease(environment) as worker,
        pytest.raises(Exception, match="ended its process with exit code 3") as caught,
    ):
        call(worker, "count", {}, tmp_path)
    assert "no such interpreter" in caught.value.details
    pool.close()


def test_an_interpreter_that_is_gone_is_said_in_words(tmp_path: Path) -> None:
    environment = Environment(name="x", python=tmp_path / "no", versions={}, digest="", python_version="3.11")
    with pytest.raises(EnvironmentMissingError, match="the interpreter of environment x does not start"):
        WorkerPool(tmp_path / "logs").warm(environment, ())
