"""Ctrl-C, SIGTERM, kill -9 and two builds at once: no worker outlives its parent, nothing half-written is ever used."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bundler.execution.cache import Cache, open_cache
from bundler.execution.executor import Executor
from bundler.execution.sources import Source
from bundler.execution.steps import Cancelled
from bundler.model.events import Reporter, ignore
from tests.unit.execution.conftest import Execute, StartBuild, step

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals as POSIX has them")


def wait_until_hanging(mark: Path, process: subprocess.Popen[str]) -> int:
    deadline = time.monotonic() + 30
    while not mark.exists() or not mark.read_text():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int(mark.read_text())


def is_gone(pid: int) -> bool:
    for _ in range(250):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        status = Path(f"/proc/{pid}/stat")
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True  # dead; whoever adopted it has not asked yet
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_ends_its_worker_and_clears_up(
    start_build: StartBuild, tmp_path: Path, number: signal.Signals
) -> None:
    process = start_build("patient", mark=str(tmp_path / "mark"), native=True)
    worker = wait_until_hanging(tmp_path / "mark", process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == (143 if number == signal.SIGTERM else -signal.SIGINT), errors
    assert is_gone(worker)
    assert [path.name for path in (tmp_path / "cache" / "tmp").iterdir()] == ["upkeep"]


@pytest.mark.parametrize("native", [False, True])
def test_a_killed_build_leaves_no_worker_and_nothing_that_the_next_one_trips_over(
    start_build: StartBuild,
    tmp_path: Path,
    native: bool,  # noqa: FBT001
) -> None:
    if native and not sys.platform.startswith("linux"):
        pytest.skip("only Linux ends a worker that holds the interpreter")
    process = start_build("patient", mark=str(tmp_path / "mark"), native=native)
    worker = wait_until_hanging(tmp_path / "mark", process)
    process.kill()
    process.communicate()
    assert is_gone(worker)
    left = {path.name for path in (tmp_path / "cache" / "tmp").iterdir()}
    assert len(left) == 3
    done = start_build("grow", add="1")
    out, errors = done.communicate(timeout=60)
    assert done.returncode == 0, errors
    assert Path(json.loads(out)["path"]).read_bytes() == b"a model1"
    assert [path.name for path in (tmp_path / "cache" / "tmp").iterdir()] == ["upkeep"]


def test_killed_at_any_moment_the_next_build_is_good(start_build: StartBuild) -> None:
    for delay in (0.05, 0.15, 0.3, 0.4, 0.5, 0.6):
        process = start_build("grow", add="1")
        time.sleep(delay)
        process.kill()
        process.communicate()
    out, errors = start_build("grow", add="1").communicate(timeout=60)
    assert errors == ""
    assert Path(json.loads(out)["path"]).read_bytes() == b"a model1"


def test_two_builds_that_need_the_same_step_run_it_once(start_build: StartBuild, tmp_path: Path) -> None:
    log = tmp_path / "log"
    builds = [start_build("grow", log=str(log), seconds=1.5) for _ in range(3)]
    answers = [json.loads(build.communicate(timeout=60)[0]) for build in builds]
    assert log.read_text() == "run\n"
    assert sorted(answer["cached"] for answer in answers) == [False, True, True]
    assert len({answer["path"] for answer in answers}) == 1


def test_when_the_build_that_runs_a_step_is_killed_the_one_that_waits_takes_over(
    start_build: StartBuild, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    first = start_build("grow", log=str(log), seconds=2)
    while not log.exists():
        time.sleep(0.02)
    second = start_build("grow", log=str(log), seconds=2)
    time.sleep(0.5)
    first.kill()
    out, errors = second.communicate(timeout=60)
    assert errors == ""
    assert json.loads(out)["cached"] is False
    assert log.read_text() == "run\nrun\n"


def test_what_a_living_build_uses_is_not_swept(execute: Execute, cache: Cache) -> None:
    execute(step("grow"))
    mine = cache.scratch.new_folder()
    with open_cache(str(cache.root)) as other:
        other.scratch.new_folder()
        assert mine.is_dir()


def test_leaving_the_executor_ends_what_other_threads_build(
    cache: Cache, sources: Mapping[str, Source], tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    with ThreadPoolExecutor(1) as threads:
        with Executor(cache) as executor:
            steps = (step("patient", mark=str(mark)),)
            build = threads.submit(executor.execute, steps, sources, Reporter(ignore, "x"))
            while not mark.exists() or not mark.read_text():
                time.sleep(0.02)
        assert is_gone(int(mark.read_text()))
        with pytest.raises(Cancelled):
            build.result(timeout=10)
