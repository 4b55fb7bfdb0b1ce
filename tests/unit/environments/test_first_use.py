"""What no lock pins yet: it is said, and no index can slip in for another."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundler.environments.lockfiles import parse_lock
from bundler.environments.registry import Environments, PythonPackages
from bundler.model.events import Event, Reporter
from tests.unit.environments.test_environments import says, write_wheel

ROOT = Path(__file__).parents[3]


def make_index(folder: Path, version: str) -> str:
    """A package index with one wheel of `tinytool`; returns its address."""
    package = folder / "tinytool"
    package.mkdir(parents=True)
    write_wheel(package, version)
    (wheel,) = package.glob("*.whl")
    (package / "index.html").write_text(f'<a href="{wheel.name}">{wheel.name}</a>', "utf-8")
    (folder / "index.html").write_text('<a href="tinytool/">tinytool</a>', "utf-8")
    return folder.as_uri()


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two indexes, as pip's own variables name them: the extra one has the version that is meant."""
    for name in ("UV_FIND_LINKS", "PIP_FIND_LINKS", "UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", make_index(tmp_path / "own", "1.0"))
    monkeypatch.setenv("PIP_INDEX_URL", make_index(tmp_path / "public", "9.9"))


@pytest.mark.usefixtures("mixed")
def test_what_is_not_pinned_comes_from_one_index(tmp_path: Path) -> None:
    lock = Environments(tmp_path / "cache").lock_for("unlocked", PythonPackages(("tinytool",)))
    assert lock.versions() == {"tinytool": "1.0"}


@pytest.mark.usefixtures("mixed")
def test_it_says_what_is_trusted_and_only_the_first_time(tmp_path: Path) -> None:
    for heard in (1, 0):
        events: list[Event] = []
        Environments(tmp_path / "cache").lock_for("unlocked", PythonPackages(("tinytool",)), Reporter(events.append))
        assert len([text for text in says(events) if "it trusts the index this time" in text]) == heard


def test_the_development_environment_is_pinned_by_digest_on_every_system() -> None:
    text = (ROOT / "constraints.txt").read_text("utf-8")
    assert "://" not in text
    pins = parse_lock("constraints.txt", text).pins  # raises for what has no digest
    compiled = {pin.name: len(pin.hashes) for pin in pins if pin.name in {"numpy", "onnxruntime", "onnx", "uv", "ruff"}}
    assert len(compiled) == 5
    assert min(compiled.values()) >= 10, "wheels of other systems are missing"
    assert "--require-hashes" in (ROOT / "Makefile").read_text("utf-8")
