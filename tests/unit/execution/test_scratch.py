"""What a killed process left in the cache is gone after the next command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bundler.execution.scratch import Scratch, remove_folder, sweep, thin_out

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_that_an_outliving_worker_wrote_after_its_lock_was_swept_goes_as_well(tmp_path: Path) -> None:
    late = tmp_path / "tmp" / "18914-82cc85ff" / "3-ab12cd"
    late.mkdir(parents=True)
    sweep(tmp_path)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_process_at_work_keeps_its_folder(tmp_path: Path) -> None:
    with Scratch(tmp_path) as scratch:
        sweep(tmp_path)
        assert scratch.folder.is_dir()
    assert [path.name for path in (tmp_path / "tmp").iterdir()] == ["upkeep"]


def test_folders_are_removed_at_every_level_and_no_link_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "kept").mkdir(parents=True)
    (outside / "kept" / "file").write_text("of somebody else")
    home = tmp_path / "home"
    (home / "lib" / "python" / "site" / "package" / "inner" / "deep").mkdir(parents=True)
    (home / "lib" / "python" / "site" / "package" / "inner" / "deep" / "file").touch()
    (home / "lib" / "python" / "away").symlink_to(outside)
    (home / "bin").symlink_to(outside)
    thin_out(home)
    assert not (home / "lib").exists()
    assert (outside / "kept" / "file").read_text() == "of somebody else"
    (tmp_path / "link").symlink_to(outside)
    thin_out(tmp_path / "link")
    thin_out(tmp_path / "nowhere")
    assert (outside / "kept" / "file").is_file()


def test_folders_in_folders_without_end_are_no_error(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("in", dir_fd=folder)
        inner = os.open("in", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    thin_out(tmp_path)
    remove_folder(tmp_path)
    assert not tmp_path.exists()
