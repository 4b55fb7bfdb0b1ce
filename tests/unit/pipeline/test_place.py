import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bundler.execution.locks import FileLock
from bundler.model.errors import StageError, UsageError
from bundler.model.events import ignore
from bundler.pipeline import finish
from bundler.pipeline.build import build
from bundler.pipeline.place import check_replaceable, put_in_place, staging_folder
from bundler.pipeline.requests import BuildRequest
from bundler.pipeline.workspace import open_workspace
from tests.support import models

DEAD = 2**22 + 1
"""Above the greatest process number that Linux gives out by default."""


def make_bundle(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bundle.json").write_text(text)


def test_a_staged_folder_takes_the_place_of_its_predecessor(tmp_path: Path) -> None:
    final = tmp_path / "model-linux"
    make_bundle(final, "old")
    with staging_folder(final) as staged:
        (staged / "bundle.json").write_text("new")
        put_in_place(staged, final)
    assert (final / "bundle.json").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["model-linux"]


def test_an_error_leaves_the_old_bundle_and_nothing_else(tmp_path: Path) -> None:
    final = tmp_path / "model-linux"
    make_bundle(final, "old")

    def interrupted_build() -> None:
        with staging_folder(final) as staged:
            (staged / "half").write_text("written")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted_build()
    assert (final / "bundle.json").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model-linux"]


def test_what_a_killed_build_left_is_swept(tmp_path: Path) -> None:
    final = tmp_path / "model-linux"
    (tmp_path / f".model-linux.{DEAD}.tmp").mkdir()
    make_bundle(tmp_path / ".model-linux.old", "killed between the two renames")
    with staging_folder(final):
        pass
    assert (final / "bundle.json").read_text() == "killed between the two renames"
    assert [path.name for path in tmp_path.iterdir()] == ["model-linux"]


def test_what_a_killed_build_of_our_own_process_number_left_is_swept(tmp_path: Path) -> None:
    """In a container the first process has the same number each time, and the output is the same volume."""
    final = tmp_path / "model-linux"
    left = tmp_path / f".model-linux.{os.getpid()}.tmp"
    left.mkdir()
    with staging_folder(final) as staged:
        assert list(staged.iterdir()) == []
        assert not left.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_build_at_work_is_not_swept_by_one_that_has_its_process_number(tmp_path: Path) -> None:
    final = tmp_path / "model-linux"
    with staging_folder(final) as first:
        (first / "half").write_text("written")
        with staging_folder(final) as second:
            assert (first / "half").is_file()
            assert list(second.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


def test_an_old_bundle_that_was_left_aside_while_we_worked_is_no_obstacle(tmp_path: Path) -> None:
    final = tmp_path / "model-linux"
    make_bundle(final, "old")
    with staging_folder(final) as staged:
        (staged / "bundle.json").write_text("new")
        make_bundle(tmp_path / ".model-linux.old", "of a build that was killed meanwhile")
        put_in_place(staged, final)
    assert (final / "bundle.json").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["model-linux"]


def test_a_link_to_a_bundle_is_replaced_and_what_it_points_at_stays(tmp_path: Path) -> None:
    make_bundle(tmp_path / "elsewhere", "old")
    final = tmp_path / "model-linux"
    final.symlink_to("elsewhere", target_is_directory=True)
    for text in ("new", "newer"):
        with staging_folder(final) as staged:
            (staged / "bundle.json").write_text(text)
            put_in_place(staged, final)
        assert (final / "bundle.json").read_text() == text
        assert {path.name for path in tmp_path.iterdir()} == {"model-linux", "elsewhere"}
    assert (tmp_path / "elsewhere" / "bundle.json").read_text() == "old"


@pytest.mark.skipif(not Path("/proc").is_mount(), reason="this machine has no /proc that is a mount point")
def test_a_mount_point_is_distinguished_before_anything_is_done() -> None:
    with pytest.raises(UsageError, match="is a mount point"):
        check_replaceable(Path("/proc"))


def test_a_disk_that_refuses_is_no_defect_of_ours(tmp_path: Path) -> None:
    def write_too_much() -> None:
        with staging_folder(tmp_path / "model-linux"), Path("/dev/full").open("w") as stream:
            stream.write("half")

    with pytest.raises(StageError, match=r"no space left on .*: writing model-linux failed"):
        write_too_much()
    assert list(tmp_path.iterdir()) == []


def test_a_defect_stays_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), staging_folder(tmp_path / "model-linux") as staged:
        (staged / "forgotten").read_text()


def test_a_folder_that_is_no_bundle_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="is not a bundle"):
        check_replaceable(tmp_path)


def test_builds_that_end_at_once_replace_each_other_whole(tmp_path: Path) -> None:
    final = tmp_path / "model-linux"

    def put(number: int) -> None:
        for turn in range(20):
            check_replaceable(final)
            staged = tmp_path / f"staged-{number}-{turn}"
            make_bundle(staged, str(number))
            put_in_place(staged, final)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put, range(4)))
    assert (final / "bundle.json").read_text() in {"0", "1", "2", "3"}
    assert [path.name for path in tmp_path.iterdir()] == ["model-linux"]


def test_of_two_at_once_the_bundle_and_what_stands_beside_it_are_of_one(tmp_path: Path) -> None:
    final, beside = tmp_path / "model-linux", tmp_path / "model-linux.report"
    second: list[Future[None]] = []

    def publish(text: str, then: Callable[[], None]) -> None:
        def write_beside() -> None:
            then()
            beside.write_text(text)

        with staging_folder(final) as staged:
            make_bundle(staged, text)
            put_in_place(staged, final, write_beside)

    def start_second(pool: ThreadPoolExecutor) -> None:
        second.append(pool.submit(publish, "second", lambda: None))
        with suppress(TimeoutError):
            second[0].result(timeout=0.3)  # it waits until the first is through
        assert (final / "bundle.json").read_text() == "first"

    with ThreadPoolExecutor(1) as pool:
        publish("first", lambda: start_second(pool))
        second[0].result()
    assert (final / "bundle.json").read_text() == beside.read_text() == "second"


def test_a_build_writes_its_report_before_another_may_publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free: list[bool] = []
    real = finish.write_report

    def write_report(*given: Any) -> Path:
        free.append(FileLock(tmp_path / "out" / ".net-linux-x64.lock").try_acquire())
        return real(*given)

    monkeypatch.setattr(finish, "write_report", write_report)
    model = models.save(models.mlp(), tmp_path, "net.onnx")
    request = BuildRequest(model=model, target="linux-x64", output=tmp_path / "out", format="files", prove=False)
    with open_workspace(str(tmp_path / "cache"), 1) as workspace:
        build(request, workspace, ignore)
    assert free == [False]
