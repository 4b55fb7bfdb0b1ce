"""`bundler cache`: what it shows, what it removes, what it must leave alone."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bundler.execution.cache import TAG_NAME, Cache, open_cache
from bundler.execution.executor import Executor
from bundler.execution.sources import digest_source
from bundler.execution.upkeep import clear, trim, usage
from bundler.model.errors import UsageError
from bundler.model.events import Reporter, ignore
from bundler.model.results import StepOutcome
from tests.unit.execution.conftest import StartBuild, step


@pytest.fixture
def build(tmp_path: Path, model: Path):
    def run(*adds: str) -> dict[str, StepOutcome]:
        steps = [step("grow", id=add, add=add) for add in adds]
        with open_cache(str(tmp_path / "cache")) as cache, Executor(cache) as executor:
            return executor.execute(steps, {"model": digest_source(model, (), cache)}, Reporter(ignore, "x"))

    return run


@pytest.fixture
def closed(tmp_path: Path) -> Cache:
    return open_cache(str(tmp_path / "cache"))


def pretend_last_used(cache: Cache, outcome: StepOutcome, seconds_ago: float) -> None:
    then = time.time() - seconds_ago
    os.utime(cache.records.path(outcome.key), (then, then))


def test_usage_counts_by_kind(build, closed: Cache) -> None:
    build("1", "22")
    parts = {part.name: part for part in usage(closed)}
    assert parts["artifacts"].entries == 2
    assert parts["artifacts"].size > 8 + 24 + 9 + 27
    assert parts["records"].entries == 2
    assert "tmp" not in parts


def test_trimming_to_an_age_removes_what_was_not_used_since(build, closed: Cache) -> None:
    outcomes = build("old", "new")
    pretend_last_used(closed, outcomes["old"], 1000)
    trimmed = trim(closed, age=500)
    assert trimmed.removed_entries == 1
    again = build("old", "new")
    assert {name: outcome.cached for name, outcome in again.items()} == {"old": False, "new": True}


def test_trimming_to_a_size_removes_the_least_recently_used_first(build, closed: Cache) -> None:
    names = ("a" * 1000, "b" * 1000, "c" * 1000)
    outcomes = build(*names)
    for outcome, ago in zip(outcomes.values(), (300, 100, 200), strict=True):
        pretend_last_used(closed, outcome, ago)
    total = sum(part.size for part in usage(closed))
    trimmed = trim(closed, size=total - 8000)
    assert trimmed.left <= total - 8000
    assert [outcome.cached for outcome in build(*names).values()] == [False, True, False]


def test_packages_and_compressed_forms_are_counted_and_trimmed_one_by_one(closed: Cache) -> None:
    for part in ("packages/npm", "compressed"):
        for name, ago in (("aa", 1000), ("bb", 0)):
            place = closed.root / part / name[:2] / name
            place.mkdir(parents=True)
            (place / "file").write_bytes(b"x" * 100)
            os.utime(place, (time.time() - ago, time.time() - ago))
    parts = {part.name: part for part in usage(closed)}
    assert (parts["packages"].entries, parts["compressed"].entries) == (2, 2)
    assert trim(closed, age=500).removed_entries == 2
    assert sorted(path.name for path in closed.root.rglob("??/??")) == ["bb", "bb"]


def test_recalling_counts_as_use(build, closed: Cache) -> None:
    outcomes = build("x")
    pretend_last_used(closed, outcomes["x"], 1000)
    build("x")
    assert trim(closed, age=500).removed_entries == 0


def test_what_a_running_build_used_is_left_alone(build, closed: Cache, start_build: StartBuild, tmp_path: Path) -> None:
    build("x")
    running = start_build("patient", mark=str(tmp_path / "mark"))
    while not (tmp_path / "mark").exists():
        time.sleep(0.02)
    build("x", "y")  # used since the other build began
    assert trim(closed, size=0).removed_entries <= 2  # the journal of the first build, say
    assert [outcome.cached for outcome in build("x", "y").values()] == [True, True]
    running.kill()
    running.communicate()
    assert trim(closed, size=0).left < 2000
    assert not build("x")["x"].cached


def test_artifacts_that_no_record_names_go(build, closed: Cache) -> None:
    outcome = build("x")["x"]
    closed.records.path(outcome.key).unlink()
    time.sleep(0.05)
    trim(closed)
    assert not outcome.path.exists()


def test_clear_deletes_everything_that_is_ours_and_nothing_else(build, closed: Cache) -> None:
    build("x")
    assert clear(closed) > 0
    assert not closed.root.exists()
    build("x")
    (closed.root / "notes.txt").write_text("somebody's")
    clear(open_cache(str(closed.root)))
    assert [path.name for path in closed.root.iterdir()] == ["notes.txt"]


def test_clear_refuses_a_folder_without_our_tag(build, closed: Cache) -> None:
    build("x")
    (closed.root / TAG_NAME).write_text("Signature: 8a477f597d28d172789f06886806bc55\n# of another program\n")
    with pytest.raises(UsageError, match="does not have bundler's CACHEDIR"):
        clear(closed)
    assert (closed.root / "artifacts").is_dir()


def test_clear_refuses_while_a_build_is_at_work(build, closed: Cache) -> None:
    build("x")
    with open_cache(str(closed.root)) as other:
        other.scratch.new_folder()
        with pytest.raises(UsageError, match="a build is running"):
            clear(closed)
    clear(closed)


def test_builds_that_begin_at_once_make_one_cache(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for turn in range(50):
            roots = [tmp_path / f"cold-{turn}"] * 8
            for cache in pool.map(lambda root: open_cache(str(root)), roots):
                cache.close()
    assert [path.name for path in (tmp_path / "cold-0").iterdir()] == [TAG_NAME]
