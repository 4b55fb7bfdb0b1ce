"""Artifacts by their coordinates and digests, with a Maven that gives files of the test's own."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from bundler.emitters.jvm.artifacts import COMPILER, COMPILER_LOCK, list_runtime, name_runtime_lock
from bundler.emitters.jvm.maven import KEPT, MavenArtifacts, fetch_artifacts
from bundler.emitters.jvm.profile import JvmSettings
from bundler.environments.lockfiles import Lock, Pin, parse_lock, render_pins, shipped_lock
from bundler.environments.registry import Environments
from bundler.model.errors import DefectError, EnvironmentMissingError
from bundler.model.events import SILENT

MAVEN = """#!{python}
import pathlib, re, sys
if "--version" in sys.argv:
    print("Apache Maven 3.9.9")
    sys.exit()
log = pathlib.Path({log!r})
log.write_text(log.read_text() + "call\\n" if log.exists() else "call\\n")
pom = pathlib.Path(sys.argv[sys.argv.index("-f") + 1]).read_text()
folder = pathlib.Path(next(text for text in sys.argv if text.startswith("-DoutputDirectory=")).partition("=")[2])
folder.mkdir()
entry = r"<artifactId>([^<]+)</artifactId><version>([^<]+)</version><type>(\\w+)</type>"
for name, version, kind in re.findall(entry, pom):
    (folder / f"{{name}}-{{version}}.{{kind}}").write_bytes({content!r})
sys.exit({code})
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "calls"


def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Path, content: bytes = b"jar", code: int = 0) -> None:
    """A `mvn` that is first on the PATH."""
    place = tmp_path / "bin"
    place.mkdir(exist_ok=True)
    program = place / "mvn"
    program.write_text(MAVEN.format(python=sys.executable, log=str(log), content=content, code=code))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(place), prepend=os.pathsep)


def lock_of(content: bytes) -> Lock:
    digest = hashlib.sha256(content).hexdigest()
    return Lock(name="x", pins=(Pin(name="com.acme:thing", version="1.0", marker="", hashes=(digest,)),))


def test_what_was_fetched_once_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    install(tmp_path, monkeypatch, log)
    environments = Environments(tmp_path / "cache")
    for _ in range(2):
        found = fetch_artifacts(lock_of(b"jar"), environments)
        assert found["com.acme:thing"].name == "thing-1.0.jar"
        assert found["com.acme:thing"].read_bytes() == b"jar"
    assert log.read_text() == "call\n"


def test_an_altered_file_is_fetched_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    install(tmp_path, monkeypatch, log)
    environments = Environments(tmp_path / "cache")
    fetch_artifacts(lock_of(b"jar"), environments)["com.acme:thing"].write_bytes(b"bad")
    assert fetch_artifacts(lock_of(b"jar"), environments)["com.acme:thing"].read_bytes() == b"jar"


def test_another_file_than_the_locked_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Path
) -> None:
    install(tmp_path, monkeypatch, log, content=b"other")
    with pytest.raises(EnvironmentMissingError, match="not the one in the lock"):
        fetch_artifacts(lock_of(b"jar"), Environments(tmp_path / "cache"))
    assert not list((tmp_path / "cache" / KEPT).rglob("*.jar"))


def test_a_maven_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    install(tmp_path, monkeypatch, log, code=1)
    with pytest.raises(EnvironmentMissingError, match=r"could not fetch thing 1\.0: Maven exited with code 1"):
        fetch_artifacts(lock_of(b"jar"), Environments(tmp_path / "cache"))


def test_without_maven_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentMissingError, match="mvn is not on the PATH") as caught:
        fetch_artifacts(lock_of(b"jar"), Environments(tmp_path / "cache"))
    assert "install Apache Maven" in (caught.value.hint or "")


def test_a_lock_of_what_is_given_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    install(tmp_path, monkeypatch, log)
    environments = Environments(tmp_path / "cache")
    source = MavenArtifacts((("com.acme:thing", "1.0"), ("com.acme:phone:aar", "2.0")))
    lock = source.resolve("x", environments, SILENT)
    assert parse_lock("x", render_pins(lock.pins)) == lock
    assert set(fetch_artifacts(lock, environments)) == {"com.acme:thing", "com.acme:phone:aar"}
    assert log.read_text() == "call\n"


@pytest.mark.parametrize("name", ["x", "a:b:c:d", "a:b</x>", "a:b\n", "../a:b", "a:b:zip", ":b"])
def test_what_are_no_coordinates_reaches_no_project(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: Path
) -> None:
    install(tmp_path, monkeypatch, log)
    pin = Pin(name=name, version="1", marker="", hashes=("0" * 64,))
    with pytest.raises((DefectError, IndexError, ValueError)):
        fetch_artifacts(Lock(name="x", pins=(pin,)), Environments(tmp_path / "cache"))


def test_locks_ship_for_what_is_used() -> None:
    runtime = shipped_lock(name_runtime_lock(JvmSettings().runtime))
    compiler = shipped_lock(COMPILER_LOCK)
    assert runtime is not None
    assert compiler is not None
    assert [(pin.name, pin.version) for pin in runtime.pins] == list(list_runtime(JvmSettings().runtime).artifacts)
    assert [(pin.name, pin.version) for pin in compiler.pins] == list(COMPILER.artifacts)
