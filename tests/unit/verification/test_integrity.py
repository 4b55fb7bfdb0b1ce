"""A bundle whose files differ from its manifest is refused, and every difference is named."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bundler.model.errors import VerificationError
from bundler.verification.integrity import check_integrity, remove_byte_code, require_integrity

FILES = {"package/model.ort": b"weights", "package/runtime.json": b"{}", "README.md": b"read me"}


def write_manifest(bundle: Path, entries: list[dict[str, object]], **more: object) -> None:
    (bundle / "bundle.json").write_text(json.dumps({"schema": 1, "files": entries, **more}))


def entry(path: str, content: bytes) -> dict[str, object]:
    return {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    root = tmp_path / "net-linux-x64"
    for path, content in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    write_manifest(root, [entry(path, content) for path, content in FILES.items()])
    return root


def test_an_untouched_bundle_is_sound(bundle: Path):
    result = require_integrity(bundle)
    assert result.sound
    assert (result.checked, result.size) == (3, sum(map(len, FILES.values())))


def test_every_fault_is_named_at_once(bundle: Path):
    (bundle / "package/model.ort").write_bytes(b"Weights")
    (bundle / "package/runtime.json").unlink()
    (bundle / "package/extra.so").write_bytes(b"\x7fELF")
    (bundle / "README.md").write_bytes(b"longer than before")
    with pytest.raises(VerificationError) as caught:
        require_integrity(bundle)
    assert caught.value.exit_code == 8
    assert caught.value.details == (
        "altered: package/model.ort (other content)",
        "altered: README.md (18 bytes instead of 7)",
        "missing: package/runtime.json",
        "not in the manifest: package/extra.so",
    )


def test_a_link_is_refused_even_when_what_it_points_to_is_right(bundle: Path, tmp_path: Path):
    moved = tmp_path / "elsewhere.ort"
    (bundle / "package/model.ort").rename(moved)
    (bundle / "package/model.ort").symlink_to(moved)
    result = check_integrity(bundle)
    assert result.links == ("package/model.ort",)
    assert not result.missing


def test_files_behind_a_linked_folder_are_missing(bundle: Path, tmp_path: Path):
    (bundle / "package").rename(tmp_path / "package")
    (bundle / "package").symlink_to(tmp_path / "package")
    result = check_integrity(bundle)
    assert result.links == ("package",)
    assert result.missing == ("package/model.ort", "package/runtime.json")


@pytest.mark.parametrize(
    "path",
    [
        "../../etc/passwd",
        "/etc/passwd",
        "package/../../secret",
        "C:\\Windows\\win.ini",
        "C:evil",
        "\\\\host\\share",
        "a\\..\\..\\b",
        "./README.md",
        "package//model.ort",
        "",
        "a\0b",
        "bundle.json",
    ],
)
def test_a_hostile_manifest_opens_nothing_outside(bundle: Path, path: str):
    write_manifest(bundle, [entry(p, c) for p, c in FILES.items()] + [entry(path, b"root")])
    result = check_integrity(bundle)
    assert len(result.escapes) == 1
    assert not result.sound
    assert result.checked == 3


def test_a_file_that_is_listed_twice_is_refused(bundle: Path):
    write_manifest(bundle, [entry(p, c) for p, c in FILES.items()] + [entry("README.md", b"other")])
    assert check_integrity(bundle).escapes == ("'README.md' (listed twice)",)


def test_compiled_python_that_appeared_is_a_fault_with_its_usual_cause(bundle: Path):
    (bundle / "package/__pycache__").mkdir()
    (bundle / "package/__pycache__/model.cpython-311.pyc").write_bytes(b"code")
    with pytest.raises(VerificationError) as caught:
        require_integrity(bundle)
    assert "delete the __pycache__ folders" in (caught.value.hint or "")


def write_byte_code(bundle: Path) -> Path:
    folder = bundle / "package/__pycache__"
    folder.mkdir()
    (folder / "model.cpython-311.pyc").write_bytes(b"code")
    return folder


def test_compiled_python_is_deleted_where_nothing_else_differs(bundle: Path):
    folder = write_byte_code(bundle)
    result = remove_byte_code(bundle, check_integrity(bundle))
    assert (result.sound, result.removed) == (True, 1)
    assert not folder.exists()


@pytest.mark.parametrize("path", ["package/extra.so", "package/model.pyc", "package/__pycache__/model.py"])
def test_nothing_is_deleted_beside_another_fault(bundle: Path, path: str):
    folder = write_byte_code(bundle)
    (bundle / path).write_bytes(b"x")
    result = remove_byte_code(bundle, check_integrity(bundle))
    assert (len(result.extra), result.removed) == (2, 0)
    assert (folder / "model.cpython-311.pyc").exists()


def test_many_faults_are_counted_not_listed(bundle: Path):
    for number in range(50):
        (bundle / f"{number:02}.txt").write_text("x")
    with pytest.raises(VerificationError, match="50 differ") as caught:
        require_integrity(bundle)
    assert caught.value.details[-1] == "… and 30 more"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        '{"schema": NaN}',
        '{"schema": true, "files": []}',
        '{"schema": 1}',
        '{"schema": 1, "files": {}}',
        '{"schema": 1, "files": [1]}',
        '{"schema": 1, "files": [{"path": "a"}]}',
        '{"schema": 1, "files": [{"path": "a", "size": "3", "sha256": ""}]}',
    ],
)
def test_a_malformed_manifest_is_a_verification_error(bundle: Path, text: str):
    (bundle / "bundle.json").write_text(text)
    with pytest.raises(VerificationError, match="not a manifest"):
        check_integrity(bundle)


def test_a_newer_manifest_asks_for_a_newer_bundler(bundle: Path):
    (bundle / "bundle.json").write_text('{"schema": 5}')
    with pytest.raises(VerificationError) as caught:
        check_integrity(bundle)
    assert "newer bundler" in (caught.value.hint or "")


def test_a_folder_without_a_manifest_is_no_bundle(tmp_path: Path):
    with pytest.raises(VerificationError, match="not a bundle"):
        check_integrity(tmp_path)


def test_a_manifest_that_is_a_link_is_refused(bundle: Path, tmp_path: Path):
    (bundle / "bundle.json").rename(tmp_path / "bundle.json")
    (bundle / "bundle.json").symlink_to(tmp_path / "bundle.json")
    with pytest.raises(VerificationError, match="symbolic link"):
        check_integrity(bundle)


def test_a_manifest_that_is_a_pipe_is_refused_and_not_waited_for(bundle: Path):
    (bundle / "bundle.json").unlink()
    os.mkfifo(bundle / "bundle.json")
    with pytest.raises(VerificationError, match="not a manifest") as caught:
        check_integrity(bundle)
    assert caught.value.details == ("it is not a regular file",)


def test_folders_are_not_followed_without_end(bundle: Path):
    """More of them than a program may recurse: made one below the other, for no call takes so long a path."""
    place, here = bundle, Path.cwd()
    try:
        for _ in range(1200):
            os.chdir(place)
            place = Path("d")
            place.mkdir()
        os.chdir(here)
        faults = check_integrity(bundle).faults
    finally:
        os.chdir(here)
        subprocess.run(["rm", "-r", bundle / "d"], check=True)  # what clears up after the tests may recurse, too
    assert faults == ("not a regular file: " + "/".join(["d"] * 64),)
    path = "/".join(["d"] * 65)
    write_manifest(bundle, [entry(path, b"")])
    assert f"refused: {path!r} (nested too deeply)" in check_integrity(bundle).faults


@settings(deadline=None)
@given(raw=st.binary(max_size=200))
def test_no_manifest_makes_it_crash(tmp_path_factory: pytest.TempPathFactory, raw: bytes):
    bundle = tmp_path_factory.mktemp("bundle")
    (bundle / "bundle.json").write_bytes(raw)
    with pytest.raises(VerificationError):
        check_integrity(bundle)


@settings(deadline=None)
@given(path=st.text(max_size=30))
def test_no_listed_path_is_taken_for_a_file_that_is_not_there(tmp_path_factory: pytest.TempPathFactory, path: str):
    bundle = tmp_path_factory.mktemp("bundle")
    write_manifest(bundle, [entry(path, b"")])
    result = check_integrity(bundle)
    assert len(result.escapes) + len(result.missing) == 1
