"""Templates, the files that they become, and the locks behind the wheels."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from packaging.requirements import Requirement

from bundler.emitters import rendering, writing
from bundler.emitters.python.context import BACKEND
from bundler.emitters.python.pex_format import describe_platform
from bundler.emitters.python.wheelhouse import BACKEND_LOCK, NUMPY, list_minor_versions, narrow_lock
from bundler.environments.lockfiles import parse_lock, shipped_lock
from bundler.model.errors import DefectError, StageError
from bundler.profiles.resolve import resolve_target, target_ids


def make_template(folder: Path, epoch: int = rendering.EPOCH) -> Path:
    template = folder / "toy"
    (template / "package" / "__pycache__").mkdir(parents=True)
    (template / "package" / "a.py").write_text("A = 1\n", "utf-8")
    (template / "package" / ".hidden").write_text("", "utf-8")
    (template / "package" / "__pycache__" / "a.pyc").write_bytes(b"")
    (template / "b.j2").write_text("{{ b }}\n", "utf-8")
    index = f'epoch = {epoch}\n[static]\n"package" = "{{package}}"\n[rendered]\n"b.j2" = "{{package}}/b.txt"\n'
    (template / "template.toml").write_text(index, "utf-8")
    return template


@pytest.fixture
def templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(rendering, "data_root", lambda _: tmp_path)
    return tmp_path


def test_a_project_is_what_its_template_declares(templates: Path) -> None:
    make_template(templates)
    out = templates / "out"
    rendering.write_project(rendering.load_template("toy"), {"b": "text"}, {"package": "p"}, out)
    files = {path.relative_to(out).as_posix(): path.read_text("utf-8") for path in out.rglob("*") if path.is_file()}
    assert files == {"p/a.py": "A = 1\n", "p/b.txt": "text\n"}


def test_a_template_of_another_epoch_is_refused(templates: Path) -> None:
    make_template(templates, epoch=99)
    with pytest.raises(DefectError, match="epoch 99"):
        rendering.load_template("toy")


def test_a_name_that_is_missing_is_an_error(templates: Path) -> None:
    make_template(templates)
    with pytest.raises(UndefinedError):
        rendering.write_project(rendering.load_template("toy"), {}, {"package": "p"}, templates / "out")


def test_files_have_fixed_modes_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.txt"
    writing.write_text(path, "a\n")
    assert path.read_bytes() == b"a\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [entry.name for entry in path.parent.iterdir()] == ["file.txt"]


def test_a_disk_that_takes_no_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(StageError, match="cannot write"):
        writing.write_text(tmp_path / "file" / "below", "x")
    with pytest.raises(StageError, match="cannot write"):
        writing.copy_file(tmp_path / "nothing", tmp_path / "copy")


PYTHON = [name for name in target_ids() if resolve_target(name).bundle.ecosystem == "python"]


@pytest.mark.parametrize("target", PYTHON)
def test_the_shipped_locks_hold_what_bundles_need(target: str) -> None:
    runtime = resolve_target(target).runtime
    lock = shipped_lock(f"python-runtime-{runtime.package}-{runtime.version}")
    backend = shipped_lock(BACKEND_LOCK)
    assert lock is not None
    assert backend is not None
    for wanted in (f"{runtime.package}=={runtime.version}", NUMPY):
        requirement = Requirement(wanted)
        found = [pin for pin in lock.pins if pin.name == requirement.name]
        assert found
        assert all(pin.version in requirement.specifier for pin in found)
    assert backend.pins[0].version in Requirement(BACKEND).specifier


def test_a_narrowed_lock_names_what_is_there_alone() -> None:
    lock = parse_lock(
        "x",
        f"b==1 --hash=sha256:{'1' * 64} --hash=sha256:{'2' * 64}\n"
        f"a==2 --hash=sha256:{'3' * 64}\nc==3 --hash=sha256:{'4' * 64}\n",
    )
    narrow = parse_lock("y", narrow_lock(lock, {"2" * 64, "3" * 64}))
    assert [(pin.name, pin.hashes) for pin in narrow.pins] == [("a", ("3" * 64,)), ("b", ("2" * 64,))]


def test_versions_are_read_from_wheels() -> None:
    names = [
        "numpy-2-cp39-cp39-x.whl",
        "o-1-cp312-cp312-x.whl",
        "o-1-cp311-cp311-x.whl",
        "p-1-cp310-abi3-x.whl",
        "q-1-py3-none-any.whl",
    ]
    assert list_minor_versions(names) == ("3.9", "3.11", "3.12")


@pytest.mark.parametrize("target", PYTHON)
def test_a_target_is_described_as_its_python_would(target: str) -> None:
    profile = resolve_target(target)
    platform = describe_platform(profile, "3.12")
    tags = platform["compatible_tags"]
    assert tags[0] == f"cp312-cp312-{profile.python.wheel_platforms[0]}"
    assert {"py3-none-any", f"cp310-abi3-{profile.python.wheel_platforms[0]}"} <= set(tags)
    assert "cp313-cp313" not in " ".join(tags)
    assert platform["marker_environment"]["python_version"] == "3.12"
