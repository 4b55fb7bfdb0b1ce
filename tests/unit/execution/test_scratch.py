"""What a killed process left in the cache is gone after the next command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bundler.execution.scratch import Scratch, sweep

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
