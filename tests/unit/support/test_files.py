"""Files and folders are there whole or not at all, whoever else writes them."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from bundler.support.files import publish_folder, replace_whole, replacing


def folder_with(path: Path, text: str) -> Path:
    path.mkdir(parents=True)
    (path / "whole").write_text(text, "utf-8")
    return path


def is_whole(folder: Path) -> bool:
    return (folder / "whole").is_file()


def write_half(path: Path) -> None:
    with replacing(path) as draft:
        draft.write_bytes(b"half")
        raise KeyboardInterrupt


def test_a_file_replaces_another_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    replace_whole(path, b"one")
    replace_whole(path, b"two", mode=0o600)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_what_fails_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        write_half(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_draft_elsewhere_is_what_is_renamed(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    replace_whole(tmp_path / "kept" / "file", b"data", draft=tmp_path / "scratch" / "1")
    assert (tmp_path / "kept" / "file").read_bytes() == b"data"
    assert list((tmp_path / "scratch").iterdir()) == []


def test_the_first_whole_folder_stays(tmp_path: Path) -> None:
    final = folder_with(tmp_path / "final", "first")
    publish_folder(folder_with(tmp_path / "draft", "second"), final, is_whole)
    assert (final / "whole").read_text("utf-8") == "first"


def test_a_folder_that_is_not_whole_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "final").mkdir()
    (tmp_path / "final" / "part").touch()
    publish_folder(folder_with(tmp_path / "draft", "new"), tmp_path / "final", is_whole)
    assert [path.name for path in (tmp_path / "final").iterdir()] == ["whole"]


@pytest.mark.parametrize("points_to", ["elsewhere", "nowhere", None])
def test_a_link_or_a_file_is_replaced_and_what_it_points_to_stays(tmp_path: Path, points_to: str | None) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    final = tmp_path / "final"
    if points_to is None:
        final.touch()
    else:
        final.symlink_to(tmp_path / points_to)
    publish_folder(folder_with(tmp_path / "draft", "new"), final, is_whole)
    assert not final.is_symlink()
    assert is_whole(final)
    assert [path.name for path in elsewhere.iterdir()] == ["kept"]


def test_a_folder_that_cannot_be_renamed_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        publish_folder(folder_with(tmp_path / "draft", "new"), tmp_path / "nowhere" / "final", is_whole)


def test_of_many_at_once_each_ends_with_a_whole_folder(tmp_path: Path) -> None:
    final, failed = tmp_path / "final", []

    def publish(number: int) -> None:
        try:
            publish_folder(folder_with(tmp_path / str(number), str(number)), final, is_whole)
            assert is_whole(final)
        except Exception as error:  # noqa: BLE001 - of a thread
            failed.append(error)

    threads = [threading.Thread(target=publish, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
