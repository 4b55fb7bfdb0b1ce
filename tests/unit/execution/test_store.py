"""A missing or altered artifact or record is a miss, never a wrong bundle."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundler.execution.artifacts import ArtifactStore
from bundler.execution.cache import Cache, is_ours, open_cache
from bundler.execution.records import ActionRecord, is_safe_path, parse_record, render_record
from bundler.model.artifacts import Artifact, FileRecord
from bundler.model.digests import digest_json
from bundler.model.errors import StageError, UsageError
from bundler.support.remembered import recall, remember
from tests.unit.execution.conftest import Execute, step


def flip(path: Path, *, keep_times: bool) -> None:
    """Alter one byte in place; with `keep_times` put the modification time back."""
    status = path.stat()
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    if keep_times:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("keep_times", [False, True])
def test_an_altered_artifact_is_made_anew(execute: Execute, keep_times: bool) -> None:  # noqa: FBT001
    path = execute(step("grow"))["grow"].path
    flip(path, keep_times=keep_times)
    outcome = execute(step("grow"))["grow"]
    assert not outcome.cached
    assert outcome.path.read_bytes() == b"a model"


@pytest.mark.parametrize("how", ["missing", "extra", "folder gone", "manifest gone", "manifest cut"])
def test_an_artifact_that_is_not_whole_is_made_anew(execute: Execute, how: str) -> None:
    outcome = execute(step("grow"))["grow"]
    folder = outcome.path.parent
    manifest = folder.with_name(f"{folder.name}.json")
    if how == "missing":
        (folder / "weights" / "w.bin").unlink()
    elif how == "extra":
        (folder / "stray").write_text("not ours")
    elif how == "folder gone":
        shutil.rmtree(folder)
    elif how == "manifest gone":
        manifest.unlink()
    else:
        manifest.write_bytes(manifest.read_bytes()[:40])
    again = execute(step("grow"))["grow"]
    assert not again.cached
    assert sorted(path.name for path in folder.rglob("*")) == ["model.onnx", "w.bin", "weights"]


def test_an_artifact_that_was_only_touched_is_read_again_and_kept(execute: Execute) -> None:
    path = execute(step("grow"))["grow"].path
    os.utime(path, ns=(1, 1))
    assert execute(step("grow"))["grow"].cached


def test_a_cache_that_was_moved_is_still_good(execute: Execute, cache: Cache, tmp_path: Path) -> None:
    digest = execute(step("grow"))["grow"].artifact.digest
    shutil.copytree(cache.root, tmp_path / "copy")
    with open_cache(str(tmp_path / "copy")) as copy:
        assert copy.artifacts.find(digest, copy.scratch) is not None


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_record_with_any_byte_altered_is_a_miss(execute: Execute, cache: Cache, data: st.DataObject) -> None:
    key = execute(step("grow"))["grow"].key
    good = cache.records.path(key).read_bytes()
    place = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[place] ^= data.draw(st.integers(1, 255))
    assert parse_record(key, bytes(bad)) is None
    assert parse_record(key, good[:place]) is None
    assert parse_record("0" * 64, good) is None
    assert parse_record(key, good) is not None


def test_an_altered_record_makes_the_step_run_again(execute: Execute, cache: Cache) -> None:
    key = execute(step("count"))["count"].key
    path = cache.records.path(key)
    path.write_bytes(path.read_bytes().replace(b'"bytes":7', b'"bytes":8'))
    outcome = execute(step("count"))["count"]
    assert (outcome.cached, outcome.facts["bytes"]) == (False, 7)


NAMES = st.text(st.characters(exclude_characters="/\\:\0", exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
    lambda name: name not in {".", ".."}
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.dictionaries(st.lists(NAMES, min_size=1, max_size=3).map("/".join), st.binary(max_size=50), max_size=5))
def test_whatever_is_stored_is_found_as_it_was(cache: Cache, files: dict[str, bytes]) -> None:
    folder = cache.scratch.new_folder()
    written = {}
    for name, content in files.items():
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        except OSError:
            continue  # one name is the folder of another, or too long
        written[name] = content
    artifact = cache.artifacts.put(folder, cache.scratch)
    found = cache.artifacts.find(artifact.digest, cache.scratch)
    assert found == artifact
    place = cache.artifacts.folder(artifact.digest)
    assert {record.path: (place / record.path).read_bytes() for record in found.files} == written


def test_storing_the_same_twice_keeps_the_first(cache: Cache) -> None:
    digests = []
    for _ in range(2):
        folder = cache.scratch.new_folder()
        (folder / "a").write_bytes(b"1")
        digests.append(cache.artifacts.put(folder, cache.scratch).digest)
        assert not folder.exists()
    assert digests[0] == digests[1]


def test_an_artifact_whose_writer_was_killed_before_the_manifest_is_taken_over(cache: Cache) -> None:
    content = FileRecord(path="a", size=1, sha256="6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b")
    digest = digest_json((content,))
    place = ArtifactStore(cache.root).folder(digest)
    place.mkdir(parents=True)
    (place / "a").write_bytes(b"half")
    folder = cache.scratch.new_folder()
    (folder / "a").write_bytes(b"1")
    assert cache.artifacts.put(folder, cache.scratch) == Artifact(digest=digest, files=(content,))
    assert (place / "a").read_bytes() == b"1"


@pytest.mark.parametrize("path", ["", ".", "/etc/passwd", "../up", "a/../../b", "c:\\x", "a\\b", "a\0b", "C:/x"])
def test_paths_from_a_shared_cache_cannot_lead_out(path: str) -> None:
    files = (FileRecord(path=path, size=1, sha256="0" * 64),)
    ingredients = {"stage": "grow"}
    record = ActionRecord(
        stage="grow",
        ingredients=ingredients,
        artifact=Artifact(digest=digest_json(files), files=files),
        entry=None,
        facts={},
        notes=(),
        seconds=0.0,
    )
    assert not is_safe_path(path)
    assert parse_record(digest_json(ingredients), render_record(record)) is None


def test_a_folder_that_is_not_ours_is_not_taken_for_a_cache(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("my work")
    with pytest.raises(UsageError, match="is not a bundler cache, and it is not empty"):
        open_cache(str(tmp_path))
    assert not is_ours(tmp_path)


@pytest.mark.parametrize("variable", ["BUNDLER_CACHE", "XDG_CACHE_HOME"])
def test_a_default_that_is_not_ours_is_refused_with_a_hint_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Nobody named it with `--cache`, so leaving that out would change nothing."""
    monkeypatch.delenv("BUNDLER_CACHE", raising=False)
    (tmp_path / "bundler").mkdir(mode=0o700)
    (tmp_path / "bundler" / "thesis.tex").write_text("my work")
    monkeypatch.setenv(variable, str(tmp_path / "bundler" if variable == "BUNDLER_CACHE" else tmp_path))
    with pytest.raises(UsageError, match="is not a bundler cache") as caught:
        open_cache()
    assert caught.value.hint == "name an empty or new folder with `--cache`"
    with open_cache(str(tmp_path / "new")) as cache:
        assert cache.root == tmp_path / "new"


def test_the_cache_stands_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUNDLER_CACHE", str(tmp_path / "there"))
    with open_cache() as cache:
        assert cache.root == tmp_path / "there"
    assert is_ours(tmp_path / "there")
    with open_cache("memory://team") as cache:
        assert cache.root == tmp_path / "there"
        assert cache.remote is not None


def test_a_manifest_from_somebody_else_is_not_believed(execute: Execute, cache: Cache) -> None:
    outcome = execute(step("grow"))["grow"]
    manifest = outcome.path.parent.with_name(f"{outcome.artifact.digest}.json")
    about = f"artifact {outcome.artifact.digest}"
    data = recall(manifest, about)
    data["files"][0]["path"] = "../../../escape"
    remember(manifest, data, about)
    assert cache.artifacts.find(outcome.artifact.digest, cache.scratch) is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_may_not_be_written_is_said(cache: Cache) -> None:
    cache.root.chmod(0o500)
    with pytest.raises(StageError, match="cannot write to the cache"):
        cache.scratch.new_folder()
    cache.root.chmod(0o700)


def test_a_file_where_the_cache_wants_a_folder_is_said(cache: Cache) -> None:
    (cache.root / "tmp").write_text("in the way")
    with pytest.raises(StageError, match="cannot write to the cache in"):
        cache.scratch.new_folder()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_cache_that_cannot_be_made_is_no_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BUNDLER_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/proc")
    with pytest.raises(UsageError) as caught:
        open_cache()
    assert caught.value.message == "the cache folder /proc/.cache/bundler cannot be made: No such file or directory"
    assert "`--cache` or BUNDLER_CACHE, or set HOME" in caught.value.hint
