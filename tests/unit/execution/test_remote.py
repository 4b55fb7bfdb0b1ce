"""A shared cache saves work, and whatever is wrong with it, or whoever writes to it, never harms a build."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundler.execution.cache import open_cache
from bundler.execution.executor import Executor
from bundler.execution.records import parse_record, render_record
from bundler.execution.remote import RemoteStore
from bundler.execution.signing import read_key, sign, unsign
from bundler.execution.sources import digest_source
from bundler.model.cache import CacheChoice
from bundler.model.codec import conforms
from bundler.model.errors import UsageError
from bundler.model.events import Event, Message, Reporter
from bundler.model.plan import Step
from bundler.model.results import StepOutcome
from bundler.support.remembered import MAX_BYTES, seal, seal_bytes, unseal
from tests.unit.execution.conftest import step

KEY = "the key of the team, 32 bytes long"
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)


class Machine:
    """One machine of a team: a local cache of its own, the shared one behind it."""

    def __init__(self, root: Path, url: str, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.url, self.model, self.patch = root, url, model, monkeypatch
        self.warnings: list[str] = []
        self.key: str | None = KEY

    def build(self, *steps: Step, readonly: bool = False) -> Mapping[str, StepOutcome]:
        def listen(event: Event) -> None:
            if isinstance(event, Message):
                self.warnings.append(event.note.text)

        self.patch.setenv("BUNDLER_CACHE", str(self.root))
        if self.key is None:
            self.patch.delenv("BUNDLER_CACHE_KEY", raising=False)
        else:
            self.patch.setenv("BUNDLER_CACHE_KEY", self.key)
        with open_cache(CacheChoice(self.url, readonly)) as cache, Executor(cache) as executor:
            return executor.execute(steps, {"model": digest_source(self.model, (), cache)}, Reporter(listen, "x"))


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


@pytest.mark.parametrize("instead", ["nothing", "a pipe", "a link"])
def test_a_file_that_is_gone_from_the_shared_cache_is_a_miss_and_is_mended(
    team: list[Machine], shared: Path, instead: str
) -> None:
    one, two, three = team
    one.build(step("grow"))
    for blob in (shared / "blobs").glob("*/*"):
        blob.unlink()
        if instead == "a pipe":
            os.mkfifo(blob)
        if instead == "a link":
            blob.symlink_to(__file__)
    assert not two.build(step("grow"))["grow"].cached
    assert three.build(step("grow"))["grow"].cached
    assert (two.warnings, three.warnings) == ([], [])


def test_an_upload_that_was_cut_is_sent_again(team: list[Machine], shared: Path) -> None:
    one, two, three = team
    one.build(step("grow"))
    for blob in (shared / "blobs").glob("*/*"):
        blob.write_bytes(blob.read_bytes()[:3])
    assert not two.build(step("grow"))["grow"].cached
    assert three.build(step("grow"))["grow"].cached


def record_in(shared: Path) -> Path:
    (record,) = (shared / "records").glob("*/*.json")
    return record


def test_an_altered_record_in_the_shared_cache_is_a_miss(team: list[Machine], shared: Path) -> None:
    one, two, _ = team
    one.build(step("count"))
    record = record_in(shared)
    record.write_bytes(record.read_bytes().replace(b'"bytes":7', b'"bytes":8'))
    outcome = two.build(step("count"))["count"]
    assert (outcome.cached, outcome.facts["bytes"]) == (False, 7)


@pytest.mark.parametrize("how", ["unsigned", "another key", "not a record", "nothing"])
def test_what_the_team_did_not_sign_is_a_miss_and_is_said_once(team: list[Machine], shared: Path, how: str) -> None:
    """Whoever may write to the bucket knows every checksum, but not the key."""
    one, two, three = team
    step_key = one.build(step("count"), step("grow"))["count"].key
    for record in (shared / "records").glob("*/*.json"):
        forged = unsign(KEY.encode(), record.stem, record.read_bytes())
        assert forged is not None
        value = unseal(forged, f"record {record.stem}")
        value["facts"] = {"bytes": 8} if record.stem == step_key else value["facts"]
        forged = seal(value, f"record {record.stem}")
        assert parse_record(record.stem, forged) is not None
        other = sign(b"the key of somebody else", record.stem, forged)
        record.write_bytes({"unsigned": forged, "another key": other, "not a record": b"\n", "nothing": b""}[how])
    outcomes = two.build(step("count"), step("grow"))
    assert (outcomes["count"].cached, outcomes["count"].facts["bytes"]) == (False, 7)
    assert two.warnings == [
        f"the shared cache {two.url} has results that are not signed with this key: bundler rebuilds them"
    ]
    assert three.build(step("count"))["count"].cached  # signed again by the second


def test_a_signed_record_at_another_steps_place_is_a_miss(team: list[Machine], shared: Path) -> None:
    one, two, _ = team
    one.build(step("count", add="1"))
    signed = record_in(shared).read_bytes()
    record_in(shared).unlink()
    one.build(step("count", add="2"))
    record_in(shared).write_bytes(signed)
    assert not two.build(step("count", add="2"))["count"].cached


def test_without_a_key_a_shared_cache_is_neither_read_nor_written(team: list[Machine], shared: Path) -> None:
    one, two, _ = team
    one.build(step("count"))
    two.key = None
    before = sorted(shared.rglob("*"))
    assert not two.build(step("count"), step("grow"))["count"].cached
    assert sorted(shared.rglob("*")) == before
    (warning,) = two.warnings
    assert warning == (
        f"the shared cache {two.url} is not used: there is no key to verify its results: set BUNDLER_CACHE_KEY or "
        "BUNDLER_CACHE_KEY_FILE to the key of its writers"
    )


def test_whoever_has_a_warm_local_cache_sends_what_the_shared_one_lacks(team: list[Machine], shared: Path) -> None:
    one, two, _ = team
    steps = (step("grow", add="1"), step("count", "grow"))
    one.key = None
    one.build(*steps)
    assert not shared.exists()
    one.key = KEY
    assert all(outcome.cached for outcome in one.build(*steps).values())
    assert all(outcome.cached for outcome in two.build(*steps).values())
    assert two.warnings == []


def test_what_the_shared_cache_has_is_looked_for_and_not_read_or_sent_again(
    team: list[Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, *_ = team
    steps = (step("grow", add="1"), step("count", "grow"))
    one.build(*steps)
    looks: list[str] = []
    lacks = RemoteStore.lacks
    monkeypatch.setattr(RemoteStore, "lacks", lambda self, key, warn: looks.append(key) or lacks(self, key, warn))
    monkeypatch.setattr(RemoteStore, "_read_chunks", lambda *_: pytest.fail("it was read"))
    monkeypatch.setattr(RemoteStore, "_push", lambda *_: pytest.fail("it was sent"))
    outcomes = one.build(*steps)
    assert looks == [outcome.key for outcome in outcomes.values()]
    assert one.warnings == []


def test_a_missing_key_is_warned_of_although_all_is_in_the_local_cache(team: list[Machine]) -> None:
    one, *_ = team
    one.build(step("count"))
    one.key = None
    assert one.build(step("count"), readonly=True)["count"].cached
    (warning,) = one.warnings
    assert "there is no key to verify its results" in warning


def test_a_readonly_shared_cache_is_read_and_not_written(team: list[Machine], shared: Path) -> None:
    one, two, _ = team
    one.build(step("count"))
    before = sorted(shared.rglob("*"))
    outcomes = two.build(step("count"), step("grow"), readonly=True)
    assert [outcome.cached for outcome in outcomes.values()] == [True, False]
    assert sorted(shared.rglob("*")) == before
    assert two.build(step("grow"))["grow"].cached  # in its own


@pytest.mark.parametrize("part", ["records", "blobs"])
@pytest.mark.parametrize("what", ["endless", "pipe", "large"])
def test_no_more_is_fetched_than_there_may_be(team: list[Machine], shared: Path, part: str, what: str) -> None:
    one, two, _ = team
    one.build(step("grow"))
    for path in (shared / part).glob("*/*"):
        path.unlink()
        if what == "endless":
            path.symlink_to("/dev/zero")
        elif what == "pipe":
            os.mkfifo(path)
        else:
            with path.open("wb") as file:
                file.truncate(MAX_BYTES * 1000)  # takes no room on the disk
    assert not two.build(step("grow"))["grow"].cached
    assert all(path.stat().st_size < MAX_BYTES for path in (shared / part).glob("*/*"))  # replaced, not written through
    assert sum(path.stat().st_size for path in two.root.rglob("*") if path.is_file()) < MAX_BYTES


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(change=st.tuples(st.floats(0, 1), st.integers(1, 255)), name=st.uuids())
def test_any_byte_of_a_shared_record_altered_gives_no_other_result(
    team: list[Machine], shared: Path, tmp_path: Path, change: tuple[float, int], name: uuid.UUID
) -> None:
    one, two, _ = team
    one.build(step("count"))
    record = record_in(shared)
    bad = bytearray(record.read_bytes())
    bad[int(change[0] * (len(bad) - 1))] ^= change[1]
    record.write_bytes(bad)
    two.root = tmp_path / f"two-{name}"
    assert two.build(step("count"))["count"].facts["bytes"] == 7


def paths_in(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(inner for key, item in items for inner in paths_in(item, (*path, key)))]


def replaced(value: Any, path: tuple[str | int, ...], by: Any) -> Any:
    if not path:
        return by
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], by)
    return copy


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_replaced_by_one_who_has_the_key_is_a_miss_or_a_sound_record(
    team: list[Machine], shared: Path, data: st.DataObject
) -> None:
    """A writer whose machine was taken over can sign anything; still nothing ends in a defect."""
    if not shared.exists():
        team[0].build(step("grow"))
    key, about = record_in(shared).stem, f"record {record_in(shared).stem}"
    good = unseal(unsign(KEY.encode(), key, record_in(shared).read_bytes()) or b"", about)
    bad = replaced(good, data.draw(st.sampled_from(paths_in(good))), data.draw(JSON))
    text = json.dumps(bad).encode("utf-8", "surrogatepass")
    record = parse_record(key, seal_bytes(text, about))
    if record is not None:
        assert record.ingredients == good["ingredients"]
        assert conforms(dict[str, Any], dict(record.facts))
        assert parse_record(key, render_record(record)) == record


def test_a_signed_record_of_files_without_an_entry_is_a_miss(team: list[Machine], shared: Path) -> None:
    team[0].build(step("grow"))
    key = record_in(shared).stem
    value = unseal(unsign(KEY.encode(), key, record_in(shared).read_bytes()) or b"", f"record {key}")
    assert parse_record(key, seal(value, f"record {key}")) is not None
    assert parse_record(key, seal({**value, "entry": None}, f"record {key}")) is None


def test_a_key_is_read_from_a_file_and_must_be_long(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"  {KEY}\n")
    assert read_key({"BUNDLER_CACHE_KEY_FILE": str(tmp_path / "key")}) == KEY.encode()
    assert read_key({"BUNDLER_CACHE_KEY": KEY}) == KEY.encode()
    assert read_key({}) is None
    with pytest.raises(UsageError, match="is too short"):
        read_key({"BUNDLER_CACHE_KEY": "hunter2"})
    with pytest.raises(UsageError, match="cannot read the key"):
        read_key({"BUNDLER_CACHE_KEY_FILE": str(tmp_path / "missing")})


def test_a_password_in_the_address_is_not_said(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path / "one", "nosuch://user:secret@bucket", model, monkeypatch)
    machine.build(step("count"))
    assert "secret" not in machine.warnings[0]


def test_a_shared_cache_that_fails_is_one_warning(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    machine = Machine(tmp_path / "one", (in_the_way / "cache").as_uri(), model, monkeypatch)
    outcomes = machine.build(step("grow"), step("count", "grow"))
    assert outcomes["count"].facts["bytes"] == 7
    (warning,) = machine.warnings
    assert warning.startswith(f"the shared cache {machine.url} does not respond and is not used in this run (")


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
