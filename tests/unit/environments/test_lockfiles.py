from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.emitters.python.locks import FOLDER as PYTHON
from bundler.emitters.python.tags import target_markers
from bundler.emitters.web.locks import FOLDER as WEB
from bundler.environments import lockfiles
from bundler.environments.lockfiles import Pin, parse_lock, render_pins, shipped_lock, shipped_names
from bundler.environments.locks import FOLDER as STAGES
from bundler.model.errors import DefectError
from bundler.model.registered import list_registered

LOCKS = [path for folder in (STAGES, PYTHON, WEB) for path in sorted(folder.glob("*.lock"))]
HASHES = st.text("0123456789abcdef", min_size=64, max_size=64)
PINS = st.builds(
    Pin,
    name=st.from_regex(r"[a-z][a-z0-9-]{0,10}", fullmatch=True),
    version=st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){0,2}(rc1|\+cpu)?", fullmatch=True),
    marker=st.sampled_from(["", "sys_platform == 'win32'", "python_full_version < '3.12' and os_name == 'nt'"]),
    hashes=st.lists(HASHES, min_size=1, max_size=3).map(lambda items: tuple(sorted(items))),
    size=st.sampled_from([0, 1, 526605292]),
)


@given(st.lists(PINS, max_size=4))
def test_a_lock_that_is_written_is_read_as_it_was(pins: list[Pin]) -> None:
    assert parse_lock("x", render_pins(pins)).pins == tuple(pins)


def test_the_size_of_a_file_does_not_decide_what_a_lock_is() -> None:
    line = "heavy==1.0 --hash=sha256:" + "0" * 64
    assert parse_lock("x", line).digest == parse_lock("x", f"{line}  # 12 bytes").digest
    assert parse_lock("x", line).digest == "628870c708f0603ab9f5a66ab36c9ca7f8fef7a92f37fc267c4d32dbcb93b0ec", (
        "environments that were made before are lost"
    )


@pytest.mark.parametrize(
    "line", ["numpy", "numpy>=2 --hash=sha256:" + "0" * 64, "numpy==2.4", "--index-url https://x", "./numpy.whl"]
)
def test_a_line_that_is_no_exact_hashed_pin_is_refused(line: str) -> None:
    with pytest.raises(DefectError, match="not an exact, hashed pin"):
        parse_lock("x", line + "\n")


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_shipped_locks_are_whole_and_name_no_index(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"https?:|index|find-links|@", text)
    assert shipped_lock(path.stem) == parse_lock(path.stem, text)
    assert shipped_lock(path.stem).pins


def test_each_ecosystem_keeps_its_own_locks() -> None:
    for folder, *names in ((STAGES, "media"), (PYTHON, "pip", "pex", "flit-core"), (WEB, "nodejs")):
        assert {*names} <= {path.stem for path in LOCKS if path.parent == folder}
    assert not [path for path in LOCKS if path.parent == STAGES and path.stem.startswith(("npm-", "python-runtime-"))]


def test_the_runtime_of_bundles_holds_for_every_python_and_system() -> None:
    lock = shipped_lock("python-runtime-onnxruntime-1.31.1")
    for tag in ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "macosx_14_0_arm64", "win_amd64", "win_arm64"):
        for version in ("3.11", "3.12", "3.13", "3.14"):
            pins = lock.select(target_markers((tag,), version))
            names = [pin.name for pin in pins]
            assert len(names) == len(set(names))
            assert {"numpy", "onnxruntime"} <= set(names)
    old = lock.versions(target_markers(("win_amd64",), "3.11"))
    assert old["onnxruntime"] == "1.31.1"


@pytest.mark.parametrize("name", ["../pip", "/etc/passwd", "nothing", ""])
def test_names_cannot_lead_out_of_the_folder_of_locks(name: str) -> None:
    assert shipped_lock(name) is None


def test_another_package_brings_locks_and_replaces_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "tool==1.0 --hash=sha256:" + "0" * 64 + "\n"
    for name in ("foreign", "pip"):
        (tmp_path / f"{name}.lock").write_text(line)
    point = EntryPoint(name="foreign", group=lockfiles.GROUP, value="foreign:LOCKS")
    own = shipped_lock("pip")
    monkeypatch.setattr(lockfiles, "list_registered", lambda group: (*list_registered(group), point))
    load = EntryPoint.load
    monkeypatch.setattr(EntryPoint, "load", lambda self: (lambda: tmp_path) if self == point else load(self))
    for remembered in (lockfiles._lock_folders, shipped_lock):
        remembered.cache_clear()
    try:
        assert shipped_lock("foreign").versions() == {"tool": "1.0"}
        assert "foreign" in shipped_names()
        assert shipped_lock("pip") == own
    finally:
        for remembered in (lockfiles._lock_folders, shipped_lock):
            remembered.cache_clear()
