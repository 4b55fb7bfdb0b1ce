"""A cache is the user's own: what others own or may write to is a shared store, of which nothing is executed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from bundler.execution.cache import Cache, default_root, open_cache
from bundler.execution.executor import Executor
from bundler.execution.sources import digest_source
from bundler.model.errors import UsageError
from bundler.model.events import Event, Message, Reporter
from tests.unit.execution.conftest import step

NOBODY = 65534
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to somebody else")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("BUNDLER_CACHE", raising=False)
    monkeypatch.delenv("BUNDLER_CACHE_KEY", raising=False)
    return tmp_path / "home"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def reported(cache: Cache, model: Path) -> list[str]:
    heard: list[Event] = []
    with Executor(cache) as executor:
        executor.execute((step("count"),), {"model": digest_source(model, (), cache)}, Reporter(heard.append, "x"))
        executor.execute((step("count"),), {"model": digest_source(model, (), cache)}, Reporter(heard.append, "x"))
    return [event.note.text for event in heard if isinstance(event, Message)]


def test_a_new_cache_is_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert mode(open_cache(str(tmp_path / "a" / "cache")).root) == 0o700
        assert mode(open_cache().root) == 0o700
    finally:
        os.umask(before)


def test_the_default_cache_is_made_private_and_that_is_said(model: Path) -> None:
    open_cache().root.chmod(0o775)
    cache = open_cache()
    assert mode(cache.root) == 0o700
    assert reported(cache, model) == [f"others could write to the cache {cache.root}: it is now private to you"]
    assert open_cache().notes == ()


def test_a_folder_that_others_may_write_to_is_a_shared_store(tmp_path: Path, model: Path) -> None:
    team = open_cache(str(tmp_path / "team")).root
    team.chmod(0o777)
    before = sorted(team.rglob("*"))
    with open_cache(str(team)) as cache:
        assert cache.root == default_root()  # where environments, proofs and wheels are
        assert cache.remote is not None
        shared, unused = reported(cache, model)
        used = f"the folder {team} is used as a shared cache, and only its signed results are trusted"
        assert shared == f"{used}: others may write to it (mode 777)"
        assert unused.startswith(f"the shared cache {team.as_uri()} is not used: there is no key to verify its results")
    assert sorted(team.rglob("*")) == before
    assert mode(team) == 0o777


def test_a_shared_folder_serves_those_who_have_the_key(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUNDLER_CACHE_KEY", "a key of thirty-two random bytes")
    (tmp_path / "team").mkdir(mode=0o770)
    (tmp_path / "team").chmod(0o770)
    for home, cached in (("one", False), ("two", True), ("two", True)):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / home))
        with open_cache(str(tmp_path / "team")) as cache, Executor(cache) as executor:
            sources = {"model": digest_source(model, (), cache)}
            assert executor.execute((step("grow"),), sources, Reporter(lambda _: None, "x"))["grow"].cached is cached
    assert sorted(path.name for path in (tmp_path / "team").iterdir()) == ["blobs", "records"]


def test_a_shared_folder_with_other_things_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("my work")
    tmp_path.chmod(0o777)
    with pytest.raises(UsageError, match="is not a bundler cache, and it is not empty"):
        open_cache(str(tmp_path))


@ROOT_ONLY
def test_a_cache_of_another_user_is_a_shared_store(tmp_path: Path, model: Path) -> None:
    theirs = open_cache(str(tmp_path / "theirs")).root
    os.chown(theirs, NOBODY, NOBODY)
    cache = open_cache(str(theirs))
    assert cache.root == default_root()
    assert "it belongs to another user (nobody, uid " in reported(cache, model)[0]


@ROOT_ONLY
def test_a_default_cache_of_another_user_is_refused() -> None:
    os.chown(open_cache().root, NOBODY, NOBODY)
    with pytest.raises(UsageError, match=r"may belong to others: it belongs to another user \(nobody, uid "):
        open_cache()


@ROOT_ONLY
def test_a_folder_of_others_in_bundler_cache_is_not_what_a_url_is_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", NOBODY, NOBODY)
    monkeypatch.setenv("BUNDLER_CACHE", str(tmp_path / "theirs"))
    assert open_cache("memory://team").root == default_root()
