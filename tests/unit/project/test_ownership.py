"""Whose project files count. Another user's are made by being somebody else: files of ours are then a stranger's."""

import os
from pathlib import Path

import pytest

from bundler.model.errors import UsageError
from bundler.project.load import find_project
from bundler.project.ownership import SAFE

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no numbers of users")

STRANGER = 4_000_000


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (SAFE, "SUDO_UID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def inner(tmp_path: Path) -> Path:
    (tmp_path / "bundler.toml").write_text('[[models]]\npath = "model.onnx"\n')
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    return folder


def become(monkeypatch: pytest.MonkeyPatch, uid: int) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)


def test_a_project_file_of_another_user_is_refused_wherever_it_is_found(
    inner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_project(inner).root == tmp_path
    become(monkeypatch, STRANGER)
    with pytest.raises(UsageError, match="belongs to another user") as caught:
        find_project(inner)
    assert f"export {SAFE}={tmp_path}" in str(caught.value.hint)
    assert f"chown {STRANGER} {tmp_path / 'bundler.toml'}" in str(caught.value.hint)


@pytest.mark.parametrize("named", ["{folder}", "/elsewhere:{folder}/", "*"])
def test_a_folder_that_is_named_safe_counts(
    inner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    become(monkeypatch, STRANGER)
    monkeypatch.setenv(SAFE, named.format(folder=tmp_path))
    assert find_project(inner).root == tmp_path


@pytest.mark.parametrize("named", ["", "{folder}/a", "{folder}/..", ":"])
def test_another_folder_that_is_named_safe_does_not(
    inner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    become(monkeypatch, STRANGER)
    monkeypatch.setenv(SAFE, named.format(folder=tmp_path))
    with pytest.raises(UsageError, match="belongs to another user"):
        find_project(inner)


def test_root_takes_the_files_of_the_user_who_called_sudo(
    inner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path.stat().st_uid
    monkeypatch.setenv("SUDO_UID", str(real))
    become(monkeypatch, 0)
    assert find_project(inner).root == tmp_path


def test_nobody_else_becomes_another_by_that_variable(inner: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", str(inner.stat().st_uid))
    become(monkeypatch, STRANGER)
    with pytest.raises(UsageError, match="belongs to another user"):
        find_project(inner)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", ["bundler.toml", "bundler.lock", "link"])
def test_files_locks_and_links_that_are_really_anothers(inner: Path, tmp_path: Path, name: str) -> None:
    own = tmp_path / "bundler.toml"
    (tmp_path / "bundler.lock").write_text("{}")
    if name == "link":  # to a file of ours: what its paths are relative to is the stranger's choice
        own.rename(tmp_path / "mine.toml")
        own.symlink_to(tmp_path / "mine.toml")
        os.chown(own, STRANGER, STRANGER, follow_symlinks=False)
    else:
        os.chown(tmp_path / name, STRANGER, STRANGER)
    with pytest.raises(UsageError, match=f"uid {STRANGER}"):
        find_project(inner)
