"""A cache that may not be written to is read, what is new is kept for the run alone, and that is said."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from bundler.execution.cache import Cache, open_cache
from bundler.execution.executor import Executor
from bundler.execution.sources import digest_source
from bundler.execution.upkeep import clear, trim, usage
from bundler.model.cache import CacheChoice
from bundler.model.errors import UsageError
from bundler.model.events import Event, Message, Reporter
from bundler.model.plan import Step
from bundler.model.results import StepOutcome
from bundler.support.remembered import BEHIND, remember
from tests.support import models
from tests.unit.execution.conftest import step


@pytest.fixture(autouse=True)
def passing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "passing").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "passing"))
    return tmp_path / "passing"


@pytest.fixture
def warm(tmp_path: Path, model: Path) -> Path:
    with open_cache(str(tmp_path / "warm")) as cache:
        build(cache, model, step("grow"))
    return tmp_path / "warm"


def build(cache: Cache, model: Path, *steps: Step, heard: list[Event] | None = None) -> Mapping[str, StepOutcome]:
    with Executor(cache) as executor:
        sources = {"model": digest_source(model, (), cache)}
        return executor.execute(steps, sources, Reporter((heard if heard is not None else []).append, "x"))


def state_of(root: Path) -> Iterator[tuple[str, int, int]]:
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        yield str(path), status.st_size, status.st_mtime_ns


def test_nothing_is_written_what_is_there_is_taken_and_it_is_said_once(warm: Path, model: Path, passing: Path) -> None:
    before, heard = list(state_of(warm)), list[Event]()
    cache = open_cache(CacheChoice(str(warm), readonly=True))
    outcomes = build(cache, model, step("grow"), step("count", "grow"), heard=heard)
    assert [outcome.cached for outcome in outcomes.values()] == [True, False]
    assert build(cache, model, step("count", "grow", add="1"), step("grow", add="2"), heard=heard)
    assert build(cache, model, step("grow", add="2"))["grow"].cached  # kept for the run
    assert list(state_of(warm)) == before
    said = [event.note.text for event in heard if isinstance(event, Message)]
    assert said == [f"the cache {warm} is read-only: new results are kept for this run only"]
    del cache
    assert list(passing.iterdir()) == []


def test_an_altered_artifact_behind_is_made_anew_and_left_as_it_is(warm: Path, model: Path) -> None:
    (altered,) = (warm / "artifacts").glob("*/*/model.onnx")
    altered.write_bytes(b"another")
    cache = open_cache(CacheChoice(str(warm), readonly=True))
    outcome = build(cache, model, step("grow"))["grow"]
    assert not outcome.cached
    assert outcome.path.read_bytes() == b"a model"
    assert altered.read_bytes() == b"another"


def test_it_is_shown_and_not_trimmed_or_cleared(warm: Path) -> None:
    cache = open_cache(CacheChoice(str(warm), readonly=True))
    assert cache.place == warm
    assert {part.name for part in usage(cache)} >= {"artifacts", "records"}
    for remove in (lambda: trim(cache, size=0), lambda: clear(cache)):
        with pytest.raises(UsageError, match="is read-only"):
            remove()


def test_nothing_is_remembered_behind(warm: Path) -> None:
    cache = open_cache(CacheChoice(str(warm), readonly=True))
    with pytest.raises(OSError, match="Read-only file system"):
        remember(cache.root / BEHIND / "sources" / "x.json", 1, "x")


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not(warm: Path, passing: Path) -> None:
    live = open_cache(CacheChoice(str(warm), readonly=True))
    left = passing / "bundler-readonly-left"
    left.mkdir()
    for folder in (left, live.root):
        os.utime(folder, (1, 1))
    second = open_cache(CacheChoice(str(warm), readonly=True))
    assert not left.exists()
    assert live.root.exists()
    assert second.root != live.root


def without_overriding() -> list[str]:
    """What starts a program for which permissions count; root's own may write everywhere."""
    if os.geteuid() != 0:
        return []
    starter = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]
    if shutil.which("setpriv") is None or subprocess.run([*starter, "true"], check=False).returncode:
        pytest.skip("root writes everywhere, and setpriv cannot take that right away here")
    return starter


def test_the_command_line_takes_a_cache_that_may_not_be_written_to(
    tmp_path: Path, passing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(passing))
    model, root = models.save(models.mlp(), tmp_path, "mlp.onnx"), tmp_path / "cache"
    command = [sys.executable, "-m", "bundler", "inspect", str(model), "--cache", str(root), "--json"]
    warmed = subprocess.run(command, capture_output=True, text=True, check=True)
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    before = list(state_of(root))
    done = subprocess.run([*without_overriding(), *command], capture_output=True, text=True, check=False)
    for folder in folders:
        folder.chmod(0o755)
    assert (done.returncode, done.stdout) == (0, warmed.stdout), done.stderr
    assert list(state_of(root)) == before
    assert list(passing.iterdir()) == []
