"""A shared cache saves work, and whatever is wrong with it never harms a build."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from bundler.execution.cache import open_cache
from bundler.execution.executor import Executor
from bundler.execution.sources import digest_source
from bundler.model.events import Event, Message
from bundler.model.plan import Step
from bundler.model.results import StepOutcome
from tests.unit.execution.conftest import step


class Machine:
    """One machine of a team: a local cache of its own, the shared one behind it."""

    def __init__(self, root: Path, url: str, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.url, self.model, self.patch = root, url, model, monkeypatch
        self.warnings: list[str] = []

    def build(self, *steps: Step) -> Mapping[str, StepOutcome]:
        def listen(event: Event) -> None:
            if isinstance(event, Message):
                self.warnings.append(event.note.text)

        self.patch.setenv("BUNDLER_CACHE", str(self.root))
        with open_cache(self.url) as cache, Executor(cache) as executor:
            return executor.execute(steps, {"model": digest_source(self.model, (), cache)}, listen, "x")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    return tmp_path / "shared"


@pytest.fixture
def team(tmp_path: Path, shared: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> list[Machine]:
    return [Machine(tmp_path / name, shared.as_uri(), model, monkeypatch) for name in ("one", "two", "three")]


def test_what_one_machine_made_the_other_need_not(team: list[Machine]) -> None:
    one, two, _ = team
    steps = (step("grow", add="1"), step("count", "grow"))
    assert not one.build(*steps)["grow"].cached
    outcomes = two.build(*steps)
    assert [outcome.cached for outcome in outcomes.values()] == [True, True]
    assert outcomes["grow"].path.read_bytes() == b"a model1"
    assert outcomes["grow"].path.is_relative_to(two.root)
    assert (one.warnings, two.warnings) == ([], [])


def test_once_fetched_it_is_local(team: list[Machine], shared: Path) -> None:
    one, two, _ = team
    one.build(step("grow"))
    two.build(step("grow"))
    shared.rename(shared.with_name("away"))
    assert two.build(step("grow"))["grow"].cached


def test_an_altered_file_in_the_shared_cache_is_a_miss_and_is_mended(team: list[Machine], shared: Path) -> None:
    one, two, three = team
    good = one.build(step("grow"))["grow"].path.read_bytes()
    for blob in (shared / "blobs").glob("*/*"):
        blob.write_bytes(bytes(len(blob.read_bytes())))
    outcome = two.build(step("grow"))["grow"]
    assert not outcome.cached
    assert outcome.path.read_bytes() == good
    assert three.build(step("grow"))["grow"].cached


def test_an_upload_that_was_cut_is_sent_again(team: list[Machine], shared: Path) -> None:
    one, two, three = team
    one.build(step("grow"))
    for blob in (shared / "blobs").glob("*/*"):
        blob.write_bytes(blob.read_bytes()[:3])
    assert not two.build(step("grow"))["grow"].cached
    assert three.build(step("grow"))["grow"].cached


def test_an_altered_record_in_the_shared_cache_is_a_miss(team: list[Machine], shared: Path) -> None:
    one, two, _ = team
    one.build(step("count"))
    (record,) = (shared / "records").glob("*/*.json")
    record.write_bytes(record.read_bytes().replace(b'"bytes":7', b'"bytes":8'))
    outcome = two.build(step("count"))["count"]
    assert (outcome.cached, outcome.facts["bytes"]) == (False, 7)


def test_a_shared_cache_that_fails_is_one_warning(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    machine = Machine(tmp_path / "one", (in_the_way / "cache").as_uri(), model, monkeypatch)
    outcomes = machine.build(step("grow"), step("count", "grow"))
    assert outcomes["count"].facts["bytes"] == 7
    (warning,) = machine.warnings
    assert warning.startswith(f"the shared cache {machine.url} does not answer and is left out of this run (")


def test_an_unknown_kind_of_url_is_a_warning_too(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path / "one", "nosuch://bucket", model, monkeypatch)
    assert machine.build(step("count"))["count"].facts["bytes"] == 7
    assert len(machine.warnings) == 1


def test_a_shared_cache_in_memory(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (Machine(tmp_path / name, "memory://team-cache", model, monkeypatch) for name in ("one", "two"))
    one.build(step("grow"))
    assert two.build(step("grow"))["grow"].cached


def test_fsspec_is_not_imported_for_a_local_cache(tmp_path: Path) -> None:
    code = (
        "import sys; from bundler.execution.executor import Executor; from bundler.execution.cache import open_cache;"
    )
    code += (
        f"open_cache({str(tmp_path / 'c')!r}); print(sorted({{'fsspec', 'onnx', 'numpy', 'uv'}} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
