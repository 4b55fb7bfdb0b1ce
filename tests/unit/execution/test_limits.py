"""What a step may take, and what is said of one that wants more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bundler.devices.local import LocalDevice, see_facts
from bundler.emitters.python.launching import Launch, start
from bundler.environments.registry import Environments
from bundler.execution.limits import Limits, bound_command, find_limits, limit_seconds
from bundler.execution.pool import WorkerPool
from bundler.execution.stage_sources import stage_packages
from bundler.model.errors import StageError, UsageError
from bundler.model.plan import HOST
from bundler.model.stage import StageSpec
from bundler.stages.registry import find_stage
from tests.unit.execution.conftest import Execute, step

POSIX = pytest.mark.skipif(os.name != "posix", reason="Windows has no such limits")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds a process to RLIMIT_DATA")


@LINUX
def test_a_step_that_asks_for_more_memory_than_it_may_have_ends_with_what_to_do(
    execute: Execute, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUNDLER_MEMORY_LIMIT", "512M")
    with pytest.raises(StageError, match="stage hoard ran out of memory") as caught:
        execute(step("hoard", bytes=1 << 30))
    assert "BUNDLER_MEMORY_LIMIT" in (caught.value.hint or "")
    assert execute(step("hoard", bytes=64 << 20))["hoard"].facts == {"bytes": 64 << 20}


@LINUX
def test_a_step_that_asks_for_more_than_the_machine_has_ends_with_what_to_do(execute: Execute) -> None:
    """No page of it is touched: it is refused when it is asked for."""
    with pytest.raises(StageError, match="stage hoard ran out of memory"):
        execute(step("hoard", bytes=find_limits(Path.cwd()).memory + 1))


@POSIX
def test_a_worker_has_the_limits_of_the_machine_and_leaves_no_core(tmp_path: Path) -> None:
    pool = WorkerPool(tmp_path / "logs")
    request = {"stage": "look", "module": "tests.support.stages_faults.look.run", "packages": stage_packages("look")}
    with pool.lease(Environments(tmp_path).describe(HOST, ())) as worker:
        folders = {"inputs": {}, "options": {}, "output": str(tmp_path), "folder": str(tmp_path)}
        answer = worker.wait(worker.post({**request, **folders}), "look", 30, lambda _share, _text: None)
        adjusted = Path(f"/proc/{worker.pid}/oom_score_adj")
        assert not adjusted.exists() or int(adjusted.read_text()) >= 500
    pool.close()
    limits = answer["result"]["facts"]["limits"]
    assert 0 < limits["memory"][1] <= find_limits(tmp_path).memory
    assert limits["memory"][0] == limits["memory"][1], "it could raise the limit again"
    assert limits["core"] == [0, 0]
    assert 0 < limits["file"][0] < 1 << 60


@pytest.mark.parametrize("size", ["much", "12", "1M", "-5G", "1e9", "9" * 400])
def test_a_memory_limit_that_is_none_is_refused(size: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUNDLER_MEMORY_LIMIT", size)
    with pytest.raises(UsageError, match="BUNDLER_MEMORY_LIMIT=") as caught:
        find_limits(tmp_path)
    assert "12G" in (caught.value.hint or "")
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    ("text", "size"), [("2G", 2 << 30), ("700m", 700 << 20), ("1GiB", 1 << 30), ("3000000000", 3 * 10**9), ("off", -1)]
)
def test_a_memory_limit_is_a_size_or_off(text: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUNDLER_MEMORY_LIMIT", text)
    assert find_limits(tmp_path).memory == size


def test_time_fits_the_step_and_its_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = StageSpec(name="x", title="x", inputs=(), produces=None, time_limit=3600.0, least_time=60.0)
    assert [limit_seconds(spec, size) for size in (0, 10_000, 500_000_000, 10**12)] == [60, 60, 1800, 3600]
    monkeypatch.setenv("BUNDLER_TIME_LIMIT", "7200")
    assert limit_seconds(spec, 0) == 7200
    monkeypatch.setenv("BUNDLER_TIME_LIMIT", "an hour")
    with pytest.raises(UsageError, match="not a number of seconds"):
        limit_seconds(spec, 0)


def test_what_only_reads_or_runs_a_small_model_has_minutes_and_not_hours() -> None:
    names = ("record_golden", "compare", "optimize", "simplify")
    assert limit_seconds(find_stage("inspect"), 10_000) == 60
    assert max(limit_seconds(find_stage(name), 10_000) for name in names) <= 900


@POSIX
def test_a_bundle_that_is_verified_has_the_same_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUNDLER_MEMORY_LIMIT", "512M")
    dump = (
        "import json, resource as r; print(json.dumps({'bundle': [r.getrlimit(kind) for kind in "
        "(r.RLIMIT_DATA, r.RLIMIT_FSIZE, r.RLIMIT_CORE)]}))"
    )
    launch = Launch(device=LocalDevice(facts=see_facts()), command=(sys.executable, "-c", dump), environment={})
    memory, file, core = start(launch, ()).report["bundle"]
    assert memory == [512 << 20, 512 << 20]
    assert 0 < file[0] == file[1] < 1 << 60
    assert core == [0, 0]


@POSIX
@pytest.mark.parametrize("size", [-1, 1 << 62])
def test_a_command_starts_whatever_the_limits_and_its_arguments(size: int) -> None:
    words = ("with space", "$HOME", "'\"", "*", "")
    command = (sys.executable, "-c", "import sys; print(sys.argv[1:])", *words)
    done = subprocess.run(
        bound_command(command, Limits(memory=size, file=size)), capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{list(words)}\n"
    assert done.stderr == ""
