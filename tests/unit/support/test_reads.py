"""What a process reads is noted as it reads it, and any doubt means that it is not known."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bundler.profiles.preprocessing import read_preprocessing
from bundler.support import reads
from bundler.support.reads import Found, Reads, announce_look

IN_MEMORY = "/dev/shm"  # noqa: S108 - the folder itself is the subject
LONG = 3_600_000_000_000


@pytest.fixture(autouse=True)
def _only_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules and folders of the test's own process are none of its reads."""
    monkeypatch.setattr(reads, "_list_modules", lambda: iter(()))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("opened", "walked/inner", "looked", "cache/records/one", "cache/tmp/mine"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def read_all(place: Path) -> None:
    (place / "opened").read_text()
    list(os.scandir(place / "walked"))
    announce_look(place / "looked")
    announce_look(place / "absent")
    (place / "cache/records/one").read_text()
    (place / "cache/tmp/mine").write_text("again")


def find(place: Path, act: Callable[[Path], object], *, settle: int = 0) -> Found | None:
    noted = Reads()
    act(place)
    return noted.find(f"{place}/cache/records/", (f"{place}/cache/tmp/",), settle)


def test_what_is_opened_listed_and_looked_at_is_noted(place: Path) -> None:
    found = find(place, read_all)
    assert found is not None
    names = {str(place / name) for name in ("opened", "walked", "walked/inner", "looked", "absent")}
    assert {name for name in found.files if name.startswith(str(place))} == names
    assert found.files[str(place / "absent")] is None
    assert list(found.contents) == [str(place / "cache/records/one")]
    assert found.is_same()


@pytest.mark.parametrize("name", ["opened", "walked/inner", "walked/more", "looked", "absent", "cache/records/one"])
def test_each_change_is_seen(place: Path, name: str) -> None:
    found = find(place, read_all)
    assert found is not None
    (place / name).write_text("other")
    assert not found.is_same()


def test_a_use_moves_the_times_of_a_record_and_changes_nothing(place: Path) -> None:
    found = find(place, read_all)
    assert found is not None
    os.utime(place / "cache/records/one")
    assert found.is_same()
    os.utime(place / "opened")
    assert not found.is_same()


def test_a_link_is_what_it_leads_to_as_well(place: Path) -> None:
    (place / "link").symlink_to("opened")
    found = find(place, lambda place: (place / "link").read_text())
    assert found is not None
    (place / "opened").write_text("other")
    assert not found.is_same()


@pytest.mark.parametrize("name", ["a.pycharm/deep/file", "a.pyc", "__pycache__/sample.npz", "a__pycache__/mod.pyc"])
def test_a_name_that_resembles_byte_code_is_noted(place: Path, name: str) -> None:
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("one")
    found = find(place, lambda _: [path.read_text(), *path.parent.rglob("*")])
    assert found is not None
    (path.parent / "more").write_text("")
    assert not found.is_same()
    found = find(place, lambda _: path.read_text())
    assert found is not None
    path.write_text("other")
    assert not found.is_same()


@pytest.mark.skipif(not os.access(IN_MEMORY, os.W_OK), reason="this system has no files in memory below /dev")
def test_a_file_in_memory_is_noted() -> None:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        path = Path(folder, "file")
        path.write_text("one")
        found = find(Path(folder), lambda _: path.read_text())
        assert found is not None
        path.write_text("other")
        assert not found.is_same()


def test_byte_code_is_not_noted(place: Path) -> None:
    path = place / "__pycache__/module.cpython-311.pyc"

    def compile_and_read(_: Path) -> None:
        path.parent.mkdir()
        draft = path.with_name(f"{path.name}.140")
        draft.write_text("")
        draft.replace(path)
        path.read_text()

    found = find(place, compile_and_read)
    assert found is not None
    path.unlink()
    assert found.is_same()


UNKNOWN: dict[str, Callable[[Path], object]] = {
    "a process is started": lambda _: subprocess.run([sys.executable, "-c", ""], check=True),
    "a file is written": lambda place: (place / "new").write_text("new"),
    "a mode is changed": lambda place: (place / "looked").chmod(0o600),
    "a file is removed": lambda place: (place / "looked").unlink(),
    "a file is renamed": lambda place: (place / "looked").rename(place / "cache/tmp/looked"),
    "a copy is looked at": lambda place: announce_look(place / "cache/tmp/mine"),
    "a file is changed after it was read": lambda place: [
        (place / "opened").read_text(),
        os.utime(place / "opened", (1, 1)),
    ],
    "a record is replaced after it was read": lambda place: [
        (place / "cache/records/one").read_text(),
        os.truncate(place / "cache/records/one", 1),
    ],
}


@pytest.mark.parametrize("act", UNKNOWN.values(), ids=UNKNOWN)
def test_what_cannot_be_repeated_is_not_known(place: Path, act: Callable[[Path], object]) -> None:
    assert find(place, act) is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_what_the_kernel_says_is_not_known(place: Path) -> None:
    assert find(place, lambda _: Path("/proc/self/cgroup").read_bytes()) is None


def test_what_changed_a_moment_before_is_not_known(place: Path) -> None:
    assert find(place, read_all, settle=LONG) is None


def test_a_link_to_a_tokenizer_is_looked_at(place: Path) -> None:
    """The file that it leads to is what is opened."""
    for name in ("one.json", "two.json"):
        (place / name).write_text("{}")
    (place / "tokenizer.json").symlink_to("one.json")
    (place / "text.toml").write_text('kind = "text"\ntokenizer = "tokenizer.json"\n')
    read_preprocessing(place / "text.toml")  # what it imports is no part of this
    found = find(place, lambda place: read_preprocessing(place / "text.toml"))
    assert found is not None
    (place / "tokenizer.json").unlink()
    (place / "tokenizer.json").symlink_to("two.json")
    assert not found.is_same()
