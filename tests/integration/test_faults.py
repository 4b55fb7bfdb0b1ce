"""Faults while a real build runs: what it says, and that nothing half-written is left to be used."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.support import models
from tests.support.command_line import Answer, CommandLine, digest_folder, end_group, list_all

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds worker processes through /proc")


def endless() -> onnx.ModelProto:
    """A valid model whose loop takes years: a hang inside native code, as far as anybody outside can see."""
    model = models.loop_model()
    (trips,) = (tensor for tensor in model.graph.initializer if tensor.name == "trips")
    trips.CopyFrom(models.tensor("trips", np.array(2**62, np.int64)))
    return model


def overflowing() -> onnx.ModelProto:
    """A valid model that asks for more memory than there is: the allocation fails inside native code."""
    nodes = [helper.make_node("Expand", ["x", "shape"], ["y"])]
    shape = models.tensor("shape", np.array([2**20, 2**20, 2**10], np.int64))
    return models.make_model(nodes, [models.value("x", [1])], [models.value("y", [None] * 3)], (shape,))


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Processes in the build's session that its own process started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(process.pid):
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == process.pid and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def wait_until_busy(process: subprocess.Popen[str], seconds: float = 1.0) -> list[int]:
    """The workers, once one has burnt `seconds` of processor time since the first look: the model runs."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        workers = workers_of(process)
        if any(_processor_seconds(worker) > seconds for worker in workers):
            return workers
        time.sleep(0.1)
    raise AssertionError("the build never ran its model")


def _processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def all_gone(pids: list[int], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        alive = [pid for pid in pids if Path(f"/proc/{pid}").exists() and not _is_zombie(pid)]
        if not alive:
            return True
        time.sleep(0.05)
    return False


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def hanging(cold: CommandLine, here: tuple[str, ...], tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A build whose worker is inside its model's endless loop."""
    model = models.save(endless(), tmp_path / "in", "endless.onnx")
    process = cold.start("build", model, *here, "--no-prove", "--output", tmp_path / "out")
    yield process
    end_group(process)


@pytest.mark.quick
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_build_leaves_no_bundle_and_no_process(
    hanging: subprocess.Popen[str], tmp_path: Path, number: signal.Signals
) -> None:
    workers = wait_until_busy(hanging, 2.5)
    hanging.send_signal(number)
    out, err = hanging.communicate(timeout=20)
    assert hanging.returncode == 130
    assert "no bundle was changed\ninterrupted; finished steps are kept in the cache" in err
    assert "Traceback" not in err
    assert out == ""
    assert all_gone(workers)
    assert list_all(tmp_path / "out") == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interruption_of_several_builds_waits_for_none_of_them_and_calls_none_failed(
    cold: CommandLine, here: tuple[str, ...], tmp_path: Path, jobs: int
) -> None:
    paths = [models.save(endless(), tmp_path / "in", f"endless{number}.onnx") for number in range(2)]
    process = cold.start("build", *paths, *here, "--no-prove", "--jobs", jobs, "--output", tmp_path / "out")
    try:
        workers = wait_until_busy(process, 2.5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    finally:
        end_group(process)
    assert process.returncode == 130
    assert "no bundle was changed\ninterrupted; finished steps are kept in the cache" in err
    assert "failed" not in err
    assert all_gone(workers)


def test_a_killed_build_leaves_no_bundle_and_no_process(
    hanging: subprocess.Popen[str], cold: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    """Killed so, it can clear up nothing itself: its workers end by themselves, and the next build is good."""
    workers = wait_until_busy(hanging, 2.5)
    hanging.kill()
    hanging.communicate(timeout=20)
    assert all_gone(workers)
    assert list_all(tmp_path / "out") == []
    other = models.save(models.mlp(), tmp_path / "in", "mlp.onnx")
    cold.build(other, *here, "--no-prove", "--output", tmp_path / "out")


@pytest.mark.skipif(not (shutil.which("java") and shutil.which("mvn")), reason="Java and Maven make a jar")
def test_a_build_of_a_jar_that_is_killed_leaves_no_compiler_and_no_folder(bundler: CommandLine, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    program = dataclasses.replace(bundler, env={**bundler.env, "TMPDIR": str(temporary)})
    model = models.save(models.mlp(), tmp_path / "in", "mlp.onnx")
    options = ("--target", "linux-x64", "--format", "jar", "--no-prove", "--output", tmp_path / "out")
    process = program.start("build", model, *options)
    deadline = time.monotonic() + 200
    while not (compilers := _find_compilers(tmp_path)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.kill()
    process.communicate()
    assert all_gone([*compilers])
    assert [path for path in temporary.iterdir() if path.name != "hsperfdata_root"] == []


def _find_compilers(folder: Path) -> set[int]:
    """Processes of the Kotlin compiler that write below `folder`."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            command = place.read_bytes()
            if b"K2JVMCompiler" in command and bytes(folder) in command:
                found.add(int(place.parent.name))
    return found


def test_a_worker_that_dies_is_one_clear_error(hanging: subprocess.Popen[str], tmp_path: Path) -> None:
    workers = wait_until_busy(hanging, 2.5)
    for worker in workers:
        os.kill(worker, signal.SIGSEGV)
    assert all_gone(workers)
    _, err = hanging.communicate(timeout=20)
    assert hanging.returncode == 6
    assert err.count("crashed in native code (SIGSEGV)") == 1
    assert "hint: " in err
    assert "Traceback" not in err
    assert list_all(tmp_path / "out") == []


def test_a_build_killed_at_any_moment_leaves_the_old_bundle_or_the_new_one(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    """Killed later and later, from the first import to the last rename."""
    first = models.save(models.mlp(hidden=16), tmp_path / "in", "mlp.onnx")
    options = (*here, "--no-prove", "--output", tmp_path / "out")
    bundle = Path(bundler.build(first, *options)["bundle"])
    old = digest_folder(bundle)
    models.save(models.mlp(hidden=24), tmp_path / "in", "mlp.onnx")
    reference = bundler.build(first, *options[:-1], tmp_path / "reference")
    new = digest_folder(Path(reference["bundle"]))
    seconds = _time(bundler, (first, *options[:-1], tmp_path / "timing"))
    for part in range(1, 8):
        process = bundler.start("build", first, *options)
        time.sleep(seconds * part / 7)
        process.kill()
        process.communicate()
        found = digest_folder(bundle) if bundle.exists() else None
        assert found in (old, new, None), f"half a bundle after {part}/7 of the time"
    bundler.build(first, *options)
    assert digest_folder(bundle) == new
    assert {path.name for path in (tmp_path / "out").iterdir()} == {bundle.name, f"{bundle.name}.report"}


def test_of_a_build_killed_at_any_moment_nothing_stays_in_the_temporary_folder(
    cold: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    """With its proof; the next command clears up in the cache."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    program = dataclasses.replace(cold, env={**cold.env, "TMPDIR": str(temporary)})
    options = (*here, "--output", tmp_path / "out")
    model = models.save(models.mlp(hidden=16), tmp_path / "in", "mlp.onnx")
    program.build(model, *options)  # fetches what every further build has
    models.save(models.mlp(hidden=17), tmp_path / "in", "mlp.onnx")
    seconds = _time(program, (model, *options))
    assert list_all(temporary) == []
    left = set()
    for part in range(1, 7):
        models.save(models.mlp(hidden=17 + part), tmp_path / "in", "mlp.onnx")
        process = program.start("build", model, *options)
        time.sleep(seconds * part / 7)
        process.kill()
        process.communicate()
        left |= {path.name for path in (cold.cache / "tmp").iterdir()} - {"upkeep"}
        assert [path for path in temporary.iterdir() if path.name.startswith("bundler")] == [], f"after {part}/7"
    assert left, "none was killed while it had a folder"
    for _ in range(10):  # a busy machine takes a moment to end the workers of what was killed, which write until then
        program.run("inspect", models.save(models.cnn(), tmp_path / "in", "cnn.onnx")).expect(0)
        if [path.name for path in (cold.cache / "tmp").iterdir()] == ["upkeep"]:
            break
        time.sleep(2)
    assert list_all(temporary) == []
    assert [path.name for path in (cold.cache / "tmp").iterdir()] == ["upkeep"]


def _time(bundler: CommandLine, arguments: tuple[str | Path, ...]) -> float:
    started = time.monotonic()
    bundler.build(*arguments)
    return time.monotonic() - started


def test_a_model_that_asks_for_too_much_memory_is_one_clear_error(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    model = models.save(overflowing(), tmp_path / "in")
    answer = bundler.run("build", model, *here, "--no-prove", "--output", tmp_path / "out", "--json")
    assert answer.code in (3, 6), answer.err
    assert answer.document["error"]["hint"]
    assert "Traceback" not in answer.err
    assert list_all(tmp_path / "out") == []


def test_two_builds_on_one_cold_cache_at_once(cold: CommandLine, here: tuple[str, ...], tmp_path: Path) -> None:
    """Same model, same output folder: both succeed, and one whole bundle stands there."""
    model = models.save(models.cnn(), tmp_path / "in", "cnn.onnx")
    options = ("build", model, *here, "--no-prove", "--json", "--output")
    started = [cold.start(*options, tmp_path / name) for name in ("out", "out", "other")]
    ends = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], ends
    assert digest_folder(tmp_path / "out" / "cnn-linux-x64") == digest_folder(tmp_path / "other" / "cnn-linux-x64")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"cnn-linux-x64", "cnn-linux-x64.report"}


def test_an_altered_cache_is_a_miss_and_never_a_wrong_bundle(
    cold: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    model = models.save(models.cnn(), tmp_path / "in", "cnn.onnx")
    options = (*here, "--no-prove", "--output")
    whole = digest_folder(Path(cold.build(model, *options, tmp_path / "a")["bundle"]))
    altered = 0
    for path in (cold.cache / "artifacts").rglob("*"):
        if path.is_file():
            path.chmod(0o644)
            path.write_bytes(path.read_bytes()[:-1] + b"X")
            altered += 1
    assert altered > 2
    assert digest_folder(Path(cold.build(model, *options, tmp_path / "b")["bundle"])) == whole


def test_altered_wheels_in_the_cache_never_reach_a_bundle(
    cold: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    model = models.save(models.mlp(), tmp_path / "in", "mlp.onnx")
    options = (*here, "--no-prove", "--output")
    whole = digest_folder(Path(cold.build(model, *options, tmp_path / "a")["bundle"]))
    for path in (cold.cache / "packages").rglob("*.whl"):
        path.chmod(0o644)
        with path.open("r+b") as stream:
            stream.seek(1000)
            stream.write(b"altered")
    assert digest_folder(Path(cold.build(model, *options, tmp_path / "b")["bundle"])) == whole


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A file system of its own with room for 6 MB, in a namespace that ends with the command."""
    able = subprocess.run(_on_small_disk(tmp_path, "true"), capture_output=True, check=False)
    if able.returncode:
        pytest.skip("this machine lets nobody mount a file system of their own")
    return tmp_path / "disk"


def _on_small_disk(folder: Path, *command: str) -> list[str]:
    disk = folder / "disk"
    disk.mkdir(exist_ok=True)
    script = f'mount -t tmpfs -o size=6m tmpfs "{disk}" && "$@"; code=$?; find "{disk}/out" 1>&2; exit $code'
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", *command]


@pytest.mark.parametrize("where", ["cache", "output"])
def test_a_full_disk_is_one_clear_error(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path, small_disk: Path, where: str
) -> None:
    model = models.big_external(tmp_path / "in", megabytes=12, layers=3)
    program = dataclasses.replace(bundler, cache=small_disk / "cache") if where == "cache" else bundler
    output = tmp_path / "out" if where == "cache" else small_disk / "out"
    command = program.command(("build", model, *here, "--no-prove", "--json", "--output", output))
    done = subprocess.run(
        _on_small_disk(tmp_path, *command), capture_output=True, text=True, check=False, env=program.environment()
    )
    answer = Answer(command=command, code=done.returncode, out=done.stdout, err=done.stderr)
    error = answer.expect(6).document["error"]
    text = " ".join((error["message"], *error["details"]))
    assert "No space left" in text or "full" in text, error
    assert error["hint"]
    assert "Traceback" not in answer.err
    listed = [line for line in answer.err.splitlines() if line.startswith(f"{small_disk}/out/")]
    assert listed == [], "nothing half-written is left on the full disk"
    assert list_all(tmp_path / "out") == []


def test_a_disk_that_an_installer_fills_is_told_as_such(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path, small_disk: Path
) -> None:
    """Not as a package that is missing."""
    model = models.save(models.mlp(), tmp_path / "in", "mlp.onnx")
    program = dataclasses.replace(bundler, cache=small_disk / "cache")
    command = program.command(("build", model, *here, "--no-prove", "--json", "--output", tmp_path / "out"))
    done = subprocess.run(
        _on_small_disk(tmp_path, *command), capture_output=True, text=True, check=False, env=program.environment()
    )
    error = Answer(command=command, code=done.returncode, out=done.stdout, err=done.stderr).expect(6).document["error"]
    assert error["message"].startswith(f"no space left on {small_disk} (")
    assert "could not " in error["message"]
    assert "Traceback" not in done.stdout


def test_a_disk_that_the_runtime_fills_is_not_blamed_on_the_model(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path, small_disk: Path
) -> None:
    """Of the model that it optimised it says that its serialization failed, and no more."""
    model = models.save(models.mlp(hidden=130_000), tmp_path / "in", "wide.onnx")
    program = dataclasses.replace(bundler, cache=small_disk / "cache")
    command = program.command(("build", model, *here, "--no-prove", "--json", "--output", tmp_path / "out"))
    done = subprocess.run(
        _on_small_disk(tmp_path, *command), capture_output=True, text=True, check=False, env=program.environment()
    )
    error = Answer(command=command, code=done.returncode, out=done.stdout, err=done.stderr).expect(6).document["error"]
    assert error["message"].startswith("no space left on ")
    assert error["message"].endswith(": stage optimize failed")
    assert str(small_disk) in error["message"]


@pytest.mark.parametrize("kilobytes", [8, 20])
def test_a_file_that_may_not_grow_is_one_clear_error(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path, kilobytes: int
) -> None:
    """The manifest meets the limit of 8, and the report, when the bundle is in its place, that of 20."""
    model = models.save(models.mlp(), tmp_path / "in", "mlp.onnx")
    options = ("build", model, *here, "--no-prove", "--format", "files", "--json", "--output")
    bundler.run(*options, tmp_path / "out").expect(0)  # what the cache has is not written again
    script = f'ulimit -f {kilobytes}; exec "$@"'
    command = ["bash", "-c", script, "bash", *bundler.command((*options, tmp_path / "limited"))]
    whole = {**bundler.environment(), "PYTHONDONTWRITEBYTECODE": "1"}  # or half of a module's byte code is left
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=whole)
    error = Answer(command=tuple(command), code=done.returncode, out=done.stdout, err=done.stderr).expect(6).document
    assert "File too large" in error["error"]["message"]
    assert error["error"]["hint"]
    assert [path.name for path in (tmp_path / "limited").iterdir() if path.name.startswith(".")] == []


def test_files_of_a_bundle_have_the_same_modes_under_any_umask(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    model = models.save(models.mlp(), tmp_path / "in", "mlp.onnx")
    command = bundler.command(("build", model, *here, "--no-prove", "--format", "files", "--output", tmp_path / "out"))
    subprocess.run(["sh", "-c", 'umask 077; exec "$@"', "sh", *command], check=True, env=bundler.environment())
    files = [path for path in (tmp_path / "out" / "mlp-linux-x64").rglob("*") if path.is_file()]
    assert {oct(path.stat().st_mode & 0o777) for path in files} == {"0o644"}


def test_a_reader_that_goes_away_is_no_error(bundler: CommandLine, tmp_path: Path) -> None:
    """`bundler inspect … | head -1` ends well."""
    model = models.save(models.cnn(), tmp_path / "in")
    command = " ".join([*bundler.command(("inspect", model)), "|", "head", "-1"])
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, env=bundler.environment())
    assert done.stdout.startswith("model")
    assert done.stderr == ""
    listing = " ".join(["set -o pipefail;", *bundler.command(("targets", "list")), "| true"])
    done = subprocess.run(["bash", "-c", listing], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_wheels_that_cannot_be_had_are_distinguished_from_a_bad_model(here: tuple[str, ...], tmp_path: Path) -> None:
    """No index and no cached wheels: the error names what could not be had, with the code for environments."""
    model = models.save(models.mlp(), tmp_path / "in")
    nowhere = {"UV_OFFLINE": "1", "UV_NO_CACHE": "1", "PIP_NO_INDEX": "1", "UV_NO_INDEX": "1", "PIP_NO_CACHE_DIR": "1"}
    offline = CommandLine(cache=tmp_path / "cache", env={**nowhere, "PIP_FIND_LINKS": str(tmp_path)})
    answer = offline.run("build", model, *here, "--no-prove", "--json", "--output", tmp_path / "out")
    error = answer.expect(5).document["error"]
    assert error["kind"] == "environment"
    assert error["hint"]
    assert list_all(tmp_path / "out") == []
