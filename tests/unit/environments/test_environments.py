"""Environments are made whole or not at all, and say why. `uv` is real; a tiny wheel built here saves the network."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bundler.emitters.python.wheels import WHEELS, fetch_wheels, fresh_environment
from bundler.environments import tools
from bundler.environments.interpreters import find_interpreter
from bundler.environments.lockfiles import parse_lock
from bundler.environments.making import environment_folder, is_whole, made_environments
from bundler.environments.registry import PYTHON_VERSION, Environments, host_version
from bundler.environments.sealing import LISTING
from bundler.environments.survey import survey
from bundler.model.errors import EnvironmentMissingError
from bundler.model.events import Event, Reporter
from bundler.support.remembered import BEHIND, remember


def write_wheel(folder: Path, version: str) -> str:
    """A wheel with one module; returns a lock line."""
    path = folder / f"tinytool-{version}-py3-none-any.whl"
    info = f"tinytool-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tinytool.py", f"VERSION = {version!r}\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tinytool\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return f"tinytool=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture
def wheelhouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where packages come from."""
    place = tmp_path / "wheelhouse"
    place.mkdir()
    for name, value in (("UV_FIND_LINKS", str(place)), ("UV_NO_INDEX", "1"), ("UV_OFFLINE", "1")):
        monkeypatch.setenv(name, value)
    return place


def says(events: list[Event]) -> list[str]:
    return [event.note.text for event in events]


def test_a_pinned_environment_is_made_once(wheelhouse: Path, tmp_path: Path) -> None:
    environments = Environments(tmp_path / "cache", {"tool": write_wheel(wheelhouse, "1.0")})
    heard: list[Event] = []
    made = environments.resolve("tool", ("tinytool",), Reporter(heard.append))
    code = "import tinytool, sys; print(tinytool.VERSION, 'pydantic' in sys.modules)"
    done = subprocess.run([made.python, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1.0", "False"]
    assert made.versions == {"tinytool": "1.0"}
    assert says(heard) == ["making environment tool (1 packages): first use"]
    assert environments.resolve("tool", ("tinytool",), Reporter(heard.append)) == made
    assert len(heard) == 1


def test_describing_makes_nothing(wheelhouse: Path, tmp_path: Path) -> None:
    environment = Environments(tmp_path / "cache", {"tool": write_wheel(wheelhouse, "1.0")}).describe("tool")
    assert environment.versions == {"tinytool": "1.0"}
    assert not environment.python.exists()
    assert not (tmp_path / "cache").exists()


def test_an_environment_that_must_be_made_again_says_why(wheelhouse: Path, tmp_path: Path) -> None:
    old, new = write_wheel(wheelhouse, "1.0"), write_wheel(wheelhouse, "2.0")
    heard: list[Event] = []
    first = Environments(tmp_path / "cache", {"tool": old}).resolve("tool", (), Reporter(heard.append))
    Environments(tmp_path / "cache", {"tool": new}).resolve("tool", (), Reporter(heard.append))
    first.python.unlink()
    Environments(tmp_path / "cache", {"tool": old}).resolve("tool", (), Reporter(heard.append))
    assert says(heard)[1:] == [
        "making environment tool (1 packages): its lock changed: tinytool 1.0 -> 2.0",
        "making environment tool (1 packages): its interpreter is missing",
    ]
    assert first.python.exists()


def alter(path: Path) -> None:
    path.write_text("raise SystemExit('altered')\n")


def alter_and_keep_the_size(path: Path) -> None:
    path.write_bytes(b"#" * path.stat().st_size)


@pytest.mark.parametrize("how", [alter, alter_and_keep_the_size, Path.unlink])
def test_an_environment_that_was_altered_is_made_anew(
    wheelhouse: Path, tmp_path: Path, how: Callable[[Path], None]
) -> None:
    text = write_wheel(wheelhouse, "1.0")
    heard: list[Event] = []
    python = Environments(tmp_path / "cache", {"tool": text}).resolve("tool", (), Reporter(heard.append)).python
    (module,) = python.parent.parent.rglob("tinytool.py")
    how(module)
    assert Environments(tmp_path / "cache", {"tool": text}).resolve("tool", (), Reporter(heard.append)).python == python
    code = "import tinytool; print(tinytool.VERSION)"
    assert subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True).stdout == "1.0\n"
    name = module.relative_to(python.parent.parent).as_posix()
    reason = f"{name} in the existing environment was modified"
    assert says(heard)[1:] == [f"making environment tool (1 packages): {reason}"]
    Environments(tmp_path / "cache", {"tool": text}).resolve("tool", (), Reporter(heard.append))  # and that one is good
    assert len(heard) == 2


def test_an_environment_with_an_altered_list_is_made_anew(wheelhouse: Path, tmp_path: Path) -> None:
    text = write_wheel(wheelhouse, "1.0")
    heard: list[Event] = []
    folder = Environments(tmp_path / "cache", {"tool": text}).resolve("tool").python.parent.parent
    (folder / LISTING).write_bytes((folder / LISTING).read_bytes().replace(b"tinytool.py", b"tinytool.pz"))
    Environments(tmp_path / "cache", {"tool": text}).resolve("tool", (), Reporter(heard.append))
    assert says(heard) == [f"making environment tool (1 packages): {LISTING} in the existing environment was modified"]


def test_byte_code_and_other_times_are_no_alteration(wheelhouse: Path, tmp_path: Path) -> None:
    text = write_wheel(wheelhouse, "1.0")
    python = Environments(tmp_path / "cache", {"tool": text}).resolve("tool").python
    subprocess.run([python, "-I", "-c", "import tinytool"], check=True)
    for path in python.parent.parent.rglob("*"):
        if path.is_file() and not path.is_symlink():
            os.utime(path, ns=(1, 1))
    heard: list[Event] = []
    Environments(tmp_path / "cache", {"tool": text}).resolve("tool", (), Reporter(heard.append))
    assert says(heard) == []


def test_an_environment_of_a_readonly_cache_is_used_and_an_altered_one_is_made_anew_beside(
    wheelhouse: Path, tmp_path: Path
) -> None:
    text = write_wheel(wheelhouse, "1.0")
    warm = Environments(tmp_path / "warm", {"tool": text}).resolve("tool").python
    (tmp_path / "over").mkdir()
    (tmp_path / "over" / BEHIND).symlink_to(tmp_path / "warm")
    over = Environments(tmp_path / "over", {"tool": text})
    assert over.resolve("tool").python.samefile(warm)
    assert over.describe("tool") == over.resolve("tool")
    (module,) = warm.parent.parent.rglob("tinytool.py")
    alter(module)
    altered = module.read_bytes()
    again = Environments(tmp_path / "over", {"tool": text})
    anew = again.resolve("tool").python
    assert anew.is_relative_to(tmp_path / "over" / "environments")
    assert again.describe("tool").python == anew
    assert module.read_bytes() == altered


def test_an_environment_that_was_cut_is_made_anew(wheelhouse: Path, tmp_path: Path) -> None:
    text = write_wheel(wheelhouse, "1.0")
    folder = environment_folder(tmp_path / "cache", parse_lock("tool", text), PYTHON_VERSION)
    (folder / "bin").mkdir(parents=True)
    heard: list[Event] = []
    Environments(tmp_path / "cache", {"tool": text}).resolve("tool", (), Reporter(heard.append))
    assert is_whole(folder)
    assert says(heard) == ["making environment tool (1 packages): the existing environment is incomplete"]


@pytest.mark.usefixtures("wheelhouse")
def test_what_cannot_be_had_is_said_with_uvs_own_words_and_leaves_nothing(tmp_path: Path) -> None:
    text = f"notthere==1.0 --hash=sha256:{'0' * 64}\n"
    with pytest.raises(EnvironmentMissingError) as caught:
        Environments(tmp_path / "cache", {"tool": text}).resolve("tool")
    assert caught.value.message == "could not install the packages of tool: uv exited with code 1"
    assert "notthere" in " ".join(caught.value.details)
    assert "bundler doctor" in (caught.value.hint or "")
    assert list((tmp_path / "cache" / "environments").iterdir()) == []


def test_a_wheel_with_other_contents_than_the_lock_says_is_refused(wheelhouse: Path, tmp_path: Path) -> None:
    text = write_wheel(wheelhouse, "1.0")
    with zipfile.ZipFile(wheelhouse / "tinytool-1.0-py3-none-any.whl", "a") as wheel:
        wheel.writestr("more.py", "")
    with pytest.raises(EnvironmentMissingError, match="could not install") as caught:
        Environments(tmp_path / "cache", {"tool": text}).resolve("tool")
    assert "hash" in " ".join(caught.value.details).lower()


@pytest.mark.usefixtures("wheelhouse")
def test_a_runtime_without_a_lock_and_without_a_network_says_what_was_tried(tmp_path: Path) -> None:
    with pytest.raises(
        EnvironmentMissingError, match=r"could not resolve the packages of environment onnxruntime==1\.2\.3"
    ):
        Environments(tmp_path / "cache").resolve("onnxruntime==1.2.3")
    assert list((tmp_path / "cache" / "locked").iterdir()) == []


def test_the_hosts_own_runtime_needs_no_environment(tmp_path: Path) -> None:
    version = host_version("onnxruntime")
    environment = Environments(tmp_path).resolve(f"onnxruntime=={version}", ("onnxruntime", "nothing"))
    assert environment.is_host
    assert environment.python == Path(sys.executable)
    assert environment.versions == {"onnxruntime": version}


@pytest.mark.parametrize("name", ["nothing", "onnxruntime==; rm -rf /", "../../x", "onnxruntime==../x"])
def test_an_unknown_environment_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(EnvironmentMissingError, match="no environment is named"):
        Environments(tmp_path).resolve(name)


def test_without_uv_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import uv  # noqa: PLC0415

    def missing() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(uv, "find_uv_bin", missing)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    tools.find_uv.cache_clear()
    with pytest.raises(EnvironmentMissingError, match="uv, which makes tool environments, was not found") as caught:
        tools.find_uv()
    assert "pip install uv" in (caught.value.hint or "")


def test_a_fresh_environment_comes_from_the_folder_alone(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    write_wheel(wheels, "1.0")
    python = fresh_environment(Path(sys.executable), wheels, ["tinytool"], tmp_path / "fresh")
    code = "import tinytool; print(tinytool.VERSION)"
    assert subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout == "1.0\n"
    with pytest.raises(EnvironmentMissingError, match="could not install numpy from"):
        fresh_environment(Path(sys.executable), wheels, ["numpy"], tmp_path / "other")


def test_what_a_folder_of_wheels_holds_stays_out_of_the_cache_of_uv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be kept there for good, unpacked once more for each set of wheels."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    write_wheel(wheels, "1.0")
    fresh_environment(Path(sys.executable), wheels, ["tinytool"], tmp_path / "fresh")
    assert not list((tmp_path / "cache").rglob("tinytool*"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "fresh", "wheels"]


def test_nothing_of_the_wheels_runs_while_they_are_installed(tmp_path: Path) -> None:
    """They may be a stranger's: what a `.pth` file of theirs says counts when the environment is used, not before."""
    wheels, ran = tmp_path / "wheels", tmp_path / "ran"
    wheels.mkdir()
    write_wheel(wheels, "1.0")
    with zipfile.ZipFile(wheels / "tinytool-1.0-py3-none-any.whl", "a") as wheel:
        wheel.writestr("tinytool.pth", f"import pathlib; pathlib.Path({str(ran)!r}).touch()\n")
    python = fresh_environment(Path(sys.executable), wheels, ["tinytool"], tmp_path / "fresh")
    assert not ran.exists()
    assert list((tmp_path / "fresh").rglob("tinytool.*.pyc"))  # and yet its byte code is there
    subprocess.run([python, "-c", ""], check=True)
    assert ran.exists()


def test_nothing_is_built_for_an_environment_of_wheels(tmp_path: Path) -> None:
    """A source distribution in place of a wheel brings a build backend, which is a program."""
    wheels, ran = tmp_path / "wheels", tmp_path / "ran"
    wheels.mkdir()
    files = {
        "PKG-INFO": "Metadata-Version: 2.1\nName: tinytool\nVersion: 1.0\n",
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": f"import pathlib; pathlib.Path({str(ran)!r}).touch()\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with tarfile.open(wheels / "tinytool-1.0.tar.gz", "w:gz") as archive:
        for name in files:
            archive.add(tmp_path / name, f"tinytool-1.0/{name}")
    with pytest.raises(EnvironmentMissingError, match="could not install tinytool from"):
        fresh_environment(Path(sys.executable), wheels, ["tinytool"], tmp_path / "fresh")
    assert not ran.exists()


@pytest.fixture
def kept_wheels(tmp_path: Path) -> tuple[str, Path]:
    """A set of wheels as an earlier fetch leaves it."""
    from bundler.model.digests import digest_json  # noqa: PLC0415

    house = tmp_path / "house"
    house.mkdir()
    text = write_wheel(house, "1.0")
    sha256 = text.strip()[-64:]
    place = tmp_path / "cache" / WHEELS / sha256[:2] / sha256 / "tinytool-1.0-py3-none-any.whl"
    place.parent.mkdir(parents=True)
    shutil.copy(house / place.name, place)
    lock = parse_lock("x", text)
    status = place.stat()
    item = {
        "name": "tinytool",
        "version": "1.0",
        "file": place.name,
        "sha256": sha256,
        "identity": [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino],
    }
    question = digest_json([lock.digest, ["win_amd64"], "3.12"])
    remember(tmp_path / "cache" / WHEELS / "sets" / f"{question}.json", [item], f"wheels {question}")
    return text, place


def test_wheels_that_were_fetched_once_need_no_network(
    kept_wheels: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, place = kept_wheels
    monkeypatch.setattr("bundler.emitters.python.wheels.run_tool", lambda *_: pytest.fail("pip was started"))
    (wheel,) = fetch_wheels(parse_lock("x", text), ("win_amd64",), "3.12", Environments(tmp_path / "cache"))
    assert (wheel.name, wheel.path) == ("tinytool", place)
    os.utime(place, ns=(1, 1))  # only touched: read again, and trusted
    assert fetch_wheels(parse_lock("x", text), ("win_amd64",), "3.12", Environments(tmp_path / "cache")) == (wheel,)


def test_an_altered_wheel_is_fetched_again(
    kept_wheels: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, place = kept_wheels
    place.write_bytes(place.read_bytes()[:-1] + b"!")
    monkeypatch.setattr("bundler.emitters.python.wheels._download", lambda *_: (_ for _ in ()).throw(LookupError))
    with pytest.raises(LookupError):
        fetch_wheels(parse_lock("x", text), ("win_amd64",), "3.12", Environments(tmp_path / "cache"))


def test_an_altered_set_of_wheels_is_fetched_again(
    kept_wheels: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept,) = (tmp_path / "cache" / WHEELS / "sets").iterdir()
    kept.write_bytes(kept.read_bytes().replace(b'"version":"1.0"', b'"version":"9.9"'))
    monkeypatch.setattr("bundler.emitters.python.wheels._download", lambda *_: (_ for _ in ()).throw(LookupError))
    with pytest.raises(LookupError):
        fetch_wheels(parse_lock("x", kept_wheels[0]), ("win_amd64",), "3.12", Environments(tmp_path / "cache"))


def test_interpreters_are_found() -> None:
    assert find_interpreter(PYTHON_VERSION) == Path(sys.executable)
    assert find_interpreter("3.99") is None


def test_the_survey_names_what_is_here(tmp_path: Path, wheelhouse: Path) -> None:
    Environments(tmp_path / "cache", {"tool": write_wheel(wheelhouse, "1.0")}).resolve("tool")
    assert len(made_environments(tmp_path / "cache")) == 1
    statuses = {status.name: status for status in survey(tmp_path / "cache")}
    assert statuses["uv"].found
    assert statuses["uv"].version
    assert statuses["onnxruntime"].version == host_version("onnxruntime")
    assert statuses[f"Python {PYTHON_VERSION}"].found
    assert any(name.startswith("environment tool-py") for name in statuses)
    assert all(status.hint for status in statuses.values() if not status.found)


def test_two_processes_that_make_the_same_environment_both_get_one(wheelhouse: Path, tmp_path: Path) -> None:
    text = write_wheel(wheelhouse, "1.0")
    code = (
        "import sys; from pathlib import Path; from bundler.environments.registry import Environments;"
        "made = Environments(Path(sys.argv[1]), {'tool': sys.argv[2]}).resolve('tool'); print(made.python.exists())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "cache"), text]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=60)[0] for process in both] == ["True\n", "True\n"]
    assert len(list((tmp_path / "cache" / "environments").iterdir())) == 1
