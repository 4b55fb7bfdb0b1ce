"""Packages of npm: what is fetched is what was locked, and is kept."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from bundler.emitters.web import nodejs
from bundler.emitters.web.npm import NpmPackage, fetch_files, name_lock
from bundler.environments.lockfiles import Lock, Pin, shipped_lock
from bundler.environments.registry import Environments
from bundler.model.errors import DefectError, EnvironmentMissingError

FILES = {"dist/a.mjs": b"export {};\n", "dist/b.wasm": b"\0asm" * 1000, "package.json": b"{}"}

FAKE_NPM = """\
#!{python}
import pathlib, shutil, sys
folder = pathlib.Path({folder!r})
with open(folder / "calls", "a") as stream:
    print(*sys.argv[1:], file=stream)
if (folder / "offline").exists():
    print((folder / "offline").read_text())
    sys.exit(1)
target = pathlib.Path(sys.argv[sys.argv.index("--pack-destination") + 1])
shutil.copy(folder / "package.tgz", target / "tiny-1.0.0.tgz")
"""


def pack(files: Mapping[str, bytes], *strange: tarfile.TarInfo, root: str = "package") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(f"{root}/{name}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        for entry in strange:
            archive.addfile(entry, io.BytesIO(b"x" * entry.size))
    return stream.getvalue()


def lock_of(data: bytes) -> Lock:
    digest = hashlib.sha256(data).hexdigest()
    return Lock(name="npm-tiny-1.0.0", pins=(Pin(name="tiny", version="1.0.0", marker="", hashes=(digest,)),))


class Registry:
    """A stand-in for npm on the PATH, with the package that it gives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.serve(pack(FILES))

    def serve(self, data: bytes) -> None:
        (self.folder / "package.tgz").write_bytes(data)
        self.lock = lock_of(data)

    def cut_off(self) -> None:
        error = {
            "code": "ENOTFOUND",
            "summary": "network request failed",
            "detail": "This is a problem\nwith the network.",
        }
        (self.folder / "offline").write_text(json.dumps({"error": error}, indent=2))

    @property
    def calls(self) -> list[str]:
        calls = self.folder / "calls"
        return calls.read_text().splitlines() if calls.exists() else []


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    folder = tmp_path / "registry"
    folder.mkdir()
    npm = folder / "npm"
    npm.write_text(FAKE_NPM.format(python=sys.executable, folder=str(folder)))
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return Registry(folder)


@pytest.fixture
def environments(tmp_path: Path) -> Environments:
    return Environments(tmp_path / "cache")


def test_files_are_what_the_package_holds(registry: Registry, environments: Environments) -> None:
    found = fetch_files(registry.lock, ("dist/b.wasm", "dist/a.mjs"), environments)
    assert [file.path for file in found] == ["dist/b.wasm", "dist/a.mjs"]
    assert [file.source.read_bytes() for file in found] == [FILES["dist/b.wasm"], FILES["dist/a.mjs"]]
    assert [file.sha256 for file in found] == [hashlib.sha256(FILES[file.path]).hexdigest() for file in found]
    assert "--ignore-scripts" in registry.calls[0]
    assert registry.calls[0].startswith("pack tiny@1.0.0 ")


def test_only_what_is_asked_for_is_unpacked(registry: Registry, environments: Environments) -> None:
    fetch_files(registry.lock, ("dist/a.mjs",), environments)
    names = {path.name for path in environments.root.rglob("*") if path.is_file()}
    assert names == {"tiny-1.0.0.tgz", "a.mjs", "a.mjs.sha256"}


def test_a_second_time_needs_no_network(registry: Registry, environments: Environments) -> None:
    first = fetch_files(registry.lock, ("dist/a.mjs",), environments)
    registry.cut_off()
    assert fetch_files(registry.lock, ("dist/a.mjs",), environments) == first
    assert fetch_files(registry.lock, ("dist/b.wasm",), environments)[0].size == 4000
    assert len(registry.calls) == 1


@pytest.mark.parametrize("altered", ["files/dist/a.mjs", "files/dist/a.mjs.sha256"])
def test_an_altered_file_is_unpacked_again(registry: Registry, environments: Environments, altered: str) -> None:
    (first,) = fetch_files(registry.lock, ("dist/a.mjs",), environments)
    place = first.source.parents[2]
    (place / altered).write_bytes(b"other")
    registry.cut_off()
    (again,) = fetch_files(registry.lock, ("dist/a.mjs",), environments)
    assert again == first
    assert again.source.read_bytes() == FILES["dist/a.mjs"]


def test_an_altered_package_is_fetched_again(registry: Registry, environments: Environments) -> None:
    (first,) = fetch_files(registry.lock, ("dist/a.mjs",), environments)
    next(environments.root.rglob("*.tgz")).write_bytes(b"other")
    first.source.unlink()
    assert fetch_files(registry.lock, ("dist/a.mjs",), environments) == (first,)
    assert len(registry.calls) == 2


def test_another_package_than_the_locked_one_is_refused(registry: Registry, environments: Environments) -> None:
    locked = registry.lock
    registry.serve(pack({**FILES, "dist/a.mjs": b"export default evil;\n"}))
    with pytest.raises(EnvironmentMissingError, match="is not the one in the lock") as caught:
        fetch_files(locked, ("dist/a.mjs",), environments)
    assert locked.pins[0].hashes[0] in caught.value.details[0]
    assert registry.lock.pins[0].hashes[0] in caught.value.details[1]
    assert not [path for path in environments.root.rglob("*") if path.is_file()]


def test_offline_with_nothing_kept_says_what_and_what_next(registry: Registry, environments: Environments) -> None:
    registry.cut_off()
    with pytest.raises(EnvironmentMissingError, match=r"cannot be reached: could not fetch tiny 1\.0\.0") as error:
        fetch_files(registry.lock, ("dist/a.mjs",), environments)
    assert error.value.details == ("network request failed", "This is a problem", "with the network.")
    assert "npm config set registry" in (error.value.hint or "")
    assert not [path for path in environments.root.rglob("*") if path.is_file()]


def test_what_npm_says_otherwise_is_reported_as_it_is(registry: Registry, environments: Environments) -> None:
    (registry.folder / "offline").write_text("npm: command failed")
    with pytest.raises(EnvironmentMissingError) as error:
        fetch_files(registry.lock, ("dist/a.mjs",), environments)
    assert error.value.details == ("npm: command failed",)


def test_a_file_that_the_package_lacks_is_named(registry: Registry, environments: Environments) -> None:
    with pytest.raises(EnvironmentMissingError, match=r"tiny 1\.0\.0 has no dist/new\.mjs"):
        fetch_files(registry.lock, ("dist/a.mjs", "dist/new.mjs"), environments)


@pytest.mark.parametrize("data", [b"", b"<html>not found</html>", pack(FILES)[:40]], ids=["empty", "page", "cut"])
def test_what_is_no_package_is_said(registry: Registry, environments: Environments, data: bytes) -> None:
    registry.serve(data)
    with pytest.raises(EnvironmentMissingError, match=r"could not unpack tiny-1\.0\.0\.tgz") as error:
        fetch_files(registry.lock, ("dist/a.mjs",), environments)
    assert "BUNDLER_CACHE" in (error.value.hint or "")


def strange_entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.size = kind, link, size
    return entry


@pytest.mark.parametrize(
    "entry",
    [
        strange_entry("package/../../../../evil", size=3),
        strange_entry("/evil", size=3),
        strange_entry("package/dist/c.mjs", tarfile.SYMTYPE, "/etc/passwd"),
        strange_entry("package/dist/c.mjs", tarfile.LNKTYPE, "package/dist/a.mjs"),
        strange_entry("package/dist/c.mjs", tarfile.FIFOTYPE),
    ],
    ids=["traversal", "absolute", "symbolic link", "hard link", "pipe"],
)
def test_nothing_leaves_its_folder(
    registry: Registry, environments: Environments, tmp_path: Path, entry: tarfile.TarInfo
) -> None:
    registry.serve(pack(FILES, entry))
    with pytest.raises(EnvironmentMissingError, match=r"has no dist/c\.mjs"):
        fetch_files(registry.lock, ("dist/a.mjs", "dist/c.mjs"), environments)
    assert not list(tmp_path.rglob("evil"))
    assert not list(environments.root.rglob("c.mjs"))


def test_a_version_without_a_lock_is_resolved_and_kept(registry: Registry, tmp_path: Path) -> None:
    name, wanted = name_lock("tiny", "1.0.0"), NpmPackage(name="tiny", version="1.0.0")
    lock = Environments(tmp_path / "cache").lock_for(name, wanted)
    assert lock.pins == registry.lock.pins
    registry.cut_off()
    later = Environments(tmp_path / "cache")
    assert later.lock_for(name, wanted) == lock
    assert fetch_files(lock, ("dist/a.mjs",), later)[0].size == len(FILES["dist/a.mjs"])
    assert len(registry.calls) == 1


@pytest.mark.parametrize(("package", "version"), [("tiny", ""), ("../x", "1.0.0"), ("a@1.0.0 b", "1.0.0"), ("a", "*")])
def test_what_is_no_exact_package_is_a_defect(environments: Environments, package: str, version: str) -> None:
    with pytest.raises(DefectError, match="not of one package of npm"):
        environments.lock_for("npm-x-1.0.0", NpmPackage(name=package, version=version))


def test_without_npm_it_comes_from_an_environment(
    registry: Registry, environments: Environments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    asked = []

    def resolve(name: str, *_: object) -> object:
        asked.append(name)
        raise EnvironmentMissingError("could not install the packages of nodejs", details=("no index",))

    monkeypatch.setattr(environments, "resolve", resolve)
    with pytest.raises(EnvironmentMissingError, match="npm is not on the PATH") as error:
        fetch_files(registry.lock, ("dist/a.mjs",), environments)
    assert asked == [nodejs.NODE_LOCK]
    assert error.value.details == ("could not install the packages of nodejs", "no index")
    assert "install Node.js 20 or newer" in (error.value.hint or "")


def test_the_locked_runtime_and_node_ship_with_bundler() -> None:
    runtime, node = shipped_lock(name_lock("onnxruntime-web", "1.30.0")), shipped_lock(nodejs.NODE_LOCK)
    assert runtime is not None
    assert runtime.versions() == {"onnxruntime-web": "1.30.0"}
    assert node is not None
    assert len(node.pins[0].hashes) > 5


@pytest.mark.slow
def test_the_real_runtime_through_the_node_of_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    hidden = ("node", "npm")
    monkeypatch.setattr(shutil, "which", lambda name, **more: None if name in hidden else which(name, **more))
    environments = Environments(tmp_path)
    lock = environments.lock(name_lock("onnxruntime-web", "1.30.0"))
    (module,) = fetch_files(lock, ("dist/ort.wasm.bundle.min.mjs",), environments)
    assert b"ONNX Runtime Web v1.30.0" in module.source.read_bytes()[:100]
    done = subprocess.run([*nodejs.find_npm(environments), "--version"], capture_output=True, text=True, check=True)
    assert int(done.stdout.partition(".")[0]) >= 10
