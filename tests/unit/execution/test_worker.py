"""Workers in environments that hold nothing of ours."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from bundler.environments.making import interpreter_in
from bundler.environments.registry import Environment
from bundler.environments.tools import run_uv
from bundler.execution import pool as pool_module
from bundler.execution.pool import Worker, WorkerPool
from bundler.execution.stage_sources import package_folder, stage_packages
from bundler.model.errors import EnvironmentMissingError, StageError
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


def test_a_worker_outlives_the_folder_that_it_was_started_in(
    bare: Environment, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "passing").mkdir()
    pool = WorkerPool(tmp_path / "logs")
    with monkeypatch.context() as started:
        started.chdir(tmp_path / "passing")
        pool.warm(bare, ())
    (tmp_path / "passing").rmdir()
    with pool.lease(bare) as worker:
        answer = call(worker, "count", {"model": str(model)}, tmp_path)
    assert answer["result"]["facts"]["bytes"] == 7
    pool.close()


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
        pytest.raises(Exception, match="exited with code 3") as caught,
    ):
        call(worker, "count", {}, tmp_path)
    assert "no such interpreter" in caught.value.details
    pool.close()


def test_an_interpreter_that_is_gone_is_said_in_words(tmp_path: Path) -> None:
    environment = Environment(name="x", python=tmp_path / "no", versions={}, digest="", python_version="3.11")
    with pytest.raises(EnvironmentMissingError, match="the interpreter of environment x does not start"):
        WorkerPool(tmp_path / "logs").warm(environment, ())


@pytest.mark.parametrize(
    "said",
    [
        "printf '%s\\n' 'free(): invalid pointer'",
        "printf '%s\\n' '[]'",
        """printf '%s\\n' '{"id": 1}'""",
        """printf '%s\\n' '{"id": 1, "progress": "half", "text": ""}'""",
        """printf '%s\\n' '{"id": 1, "result": {"facts": [], "entry": 3}}'""",
        """head -c 100000 /dev/zero | tr '\\0' '['; echo""",
        "exec cat /dev/zero",
        """exec yes '{"id": 0, "result": null}'""",
    ],
    ids=["words", "a list", "nothing", "progress", "result", "nested", "an endless line", "endless lines"],
)
def test_what_is_no_answer_ends_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """Native code that a model runs may write to any pipe, for ever."""
    monkeypatch.setattr(pool_module, "MAX_UNREAD", 1 << 20)
    hostile = tmp_path / "python"
    hostile.write_text(f"#!/bin/sh\nread request\necho last words >&2\n{said}\nsleep 60\n")
    hostile.chmod(0o755)
    environment = Environment(name="x", python=hostile, versions={}, digest="", python_version="3.11")
    pool = WorkerPool(tmp_path / "logs")
    with pool.lease(environment) as worker:
        number = worker.post({"stage": "count"})
        if 'id": 0' in said:
            time.sleep(0.5)  # nobody listens, as between two steps
        with pytest.raises(
            StageError, match="stage count was terminated: its process sent an invalid response"
        ) as caught:
            worker.wait(number, "count", 30, lambda fraction, text: None)  # noqa: ARG005
        assert "last words" in caught.value.details
        assert not worker.alive
    pool.close()


def test_endless_answers_to_another_question_end_with_the_time(tmp_path: Path) -> None:
    hostile = tmp_path / "python"
    hostile.write_text("""#!/bin/sh\nexec yes '{"id": 0, "result": null}'\n""")
    hostile.chmod(0o755)
    environment = Environment(name="x", python=hostile, versions={}, digest="", python_version="3.11")
    pool = WorkerPool(tmp_path / "logs")
    with pool.lease(environment) as worker, pytest.raises(StageError, match=r"stage count (did not finish|was ended)"):
        worker.wait(worker.post({"stage": "count"}), "count", 0.5, lambda fraction, text: None)  # noqa: ARG005
    pool.close()
