"""A command whose inputs are unchanged is answered without being run, word for word; whatever changed, it is run."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from bundler.cli import answers
from bundler.execution.cache import TAG, TAG_NAME
from bundler.support.remembered import seal
from tests.support import models
from tests.support.command_line import ROOT, CommandLine

PROGRAM = """
import atexit, os, sys
sys.argv[0] = "bundler"
atexit.register(lambda: open(os.environ["RAN"], "w").write(str("typer" in sys.modules)))
from bundler.cli import main
main()
"""
"""The program, which says in the end whether it loaded what a command takes."""

PROFILE = 'extends = "linux-x64"\nid = "own"\ntitle = "Own"\n'
BUILD = ("build", "model.onnx", "--target", "own.toml", "--samples", "samples", "--no-prove", "--format", "files")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a call printed, and whether it ran its command."""

    code: int
    out: str
    err: str
    ran: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A folder with a model, its data, samples and a profile, a cache, and a folder of installed packages."""

    folder: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    @property
    def bundle(self) -> Path:
        return self.folder / "work" / "dist" / "model-own"

    def call(self, *arguments: str, cwd: str = "work") -> Said:
        line = CommandLine(cache=self.cache, env={"PYTHONPATH": str(self.folder / "site")})
        mark = self.folder / "ran"
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder / cwd,
            env={**line.environment(), "RAN": str(mark), **self.env},
        )
        return Said(code=done.returncode, out=done.stdout, err=done.stderr, ran=mark.read_text() == "True")

    def settle(self, *arguments: str, cwd: str = "work") -> Said:
        """Call until the call is answered; what it then said."""
        for _ in range(8):
            said = self.call(*arguments, cwd=cwd)
            assert said.code == 0, said.err
            if not said.ran:
                return said
            time.sleep(0.15)  # what was just written is not trusted yet
        raise AssertionError("it is run again and again")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("answers")
    work = folder / "work"
    models.save_external(models.mlp(), work)
    (work / "samples").mkdir()
    for number in range(3):
        np.savez(work / "samples" / f"{number}.npz", x=np.full((1, 8), number, np.float32))
    (work / "own.toml").write_text(PROFILE)
    (work / "inner").mkdir()
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text("")
    return World(folder=folder)


def test_a_rebuild_with_nothing_changed_says_the_same_and_loads_nothing(world: World) -> None:
    world.settle(*BUILD)
    for path in (world.cache / "answers").iterdir():
        path.unlink()
    run, answered = world.call(*BUILD), world.call(*BUILD)
    assert (run.ran, answered.ran) == (True, False)
    assert replace(run, ran=False) == answered
    assert "up to date" in answered.out
    assert "(cached)" in answered.err


def test_warnings_are_repeated(world: World) -> None:
    synthetic = tuple(part for part in BUILD if part not in {"--samples", "samples"})
    assert "warning: the golden set is synthetic" in world.settle(*synthetic, "--output", "synthetic").err


def test_a_document_is_repeated_with_its_own_time(world: World) -> None:
    world.settle(*BUILD, "--json")
    for path in (world.cache / "answers").iterdir():
        path.unlink()
    run, answered = world.call(*BUILD, "--json"), world.call(*BUILD, "--json")
    assert (run.ran, answered.ran) == (True, False)
    (first,), (second,) = (json.loads(said.out)["bundles"] for said in (run, answered))
    assert first.pop("seconds") > second.pop("seconds") > 0
    assert first == second
    assert run.out.count("\n") == answered.out.count("\n")


def touch(path: Path) -> None:
    """Move the change time, and nothing else."""
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def flip(path: Path) -> None:
    """Another last byte, with the old times and size."""
    status, data = path.stat(), path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_file(path: Path) -> None:
    """Another file with its content, times and name."""
    shutil.copy2(path, path.with_name("other"))
    path.with_name("other").replace(path)


def in_cache(pattern: str, change: Callable[[Path], object]) -> Callable[[World], object]:
    return lambda world: [change(path) for path in tuple(world.cache.glob(pattern))]


def link_answers(world: World) -> None:
    for path in (world.cache / "answers").iterdir():
        path.rename(world.folder / path.name)
        path.symlink_to(world.folder / path.name)


CHANGES: dict[str, Callable[[World], object]] = {
    "the model is touched": lambda world: touch(world.folder / "work/model.onnx"),
    "the model is another file": lambda world: replace_file(world.folder / "work/model.onnx"),
    "the external data are touched": lambda world: touch(world.folder / "work/weights.bin"),
    "a sample is touched": lambda world: touch(world.folder / "work/samples/1.npz"),
    "the profile is touched": lambda world: touch(world.folder / "work/own.toml"),
    "a file of the bundle is altered": lambda world: flip(world.bundle / "bundle.json"),
    "a file of the bundle is gone": lambda world: (world.bundle / "runtime.json").unlink(),
    "a file is new in the bundle": lambda world: (world.bundle / "more").write_text(""),
    "the report is gone": lambda world: shutil.rmtree(world.bundle.with_name(f"{world.bundle.name}.report")),
    "the bundle is gone": lambda world: shutil.rmtree(world.bundle),
    "others may write to the output": lambda world: world.bundle.parent.chmod(0o777),
    "the records of the cache are altered": in_cache("records/*/*.json", flip),
    "the records of the cache are gone": in_cache("records/*/*.json", Path.unlink),
    "the artifacts are touched": in_cache("artifacts/*/*/*.*", touch),
    "the cache is cleared": lambda world: shutil.rmtree(world.cache),
    "the cache lost its tag": lambda world: (world.cache / TAG_NAME).write_text("another"),
    "others may write to the cache": lambda world: world.cache.chmod(0o777),
    "the answer is altered": in_cache("answers/*", flip),
    "the answer is cut": in_cache("answers/*", lambda path: os.truncate(path, 100)),
    "the answer is a link": link_answers,
    "others may write to the answer": in_cache("answers/*", lambda path: path.chmod(0o666)),
    "others may write to the answers": lambda world: (world.cache / "answers").chmod(0o777),
    "the code of a package is altered": lambda world: (world.folder / "site/sitecustomize.py").write_text("# new"),
    "the code of bundler is touched": lambda _: (ROOT / "bundler/cli/summary.py").chmod(
        (ROOT / "bundler/cli/summary.py").stat().st_mode
    ),
    "the code of a stage is touched": lambda _: (ROOT / "bundler/stages/optimize/run.py").chmod(
        (ROOT / "bundler/stages/optimize/run.py").stat().st_mode
    ),
}

PASSING: dict[str, tuple[Callable[[World], object], ...]] = {
    "a sample": (
        lambda world: np.savez(world.folder / "work/samples/n.npz", x=np.ones((1, 8), np.float32)),
        lambda world: (world.folder / "work/samples/n.npz").unlink(),
    ),
    "a base of the profile": (
        lambda world: shutil.copyfile(ROOT / "targets/linux-x64.toml", world.folder / "work/linux-x64.toml"),
        lambda world: (world.folder / "work/linux-x64.toml").unlink(),
    ),
    "a package": (
        lambda world: (world.folder / "site/new-1.dist-info").mkdir(),
        lambda world: (world.folder / "site/new-1.dist-info").rename(world.folder / "site/new-2.dist-info"),
        lambda world: (world.folder / "site/new-2.dist-info").rmdir(),
    ),
}
"""What appears, and what becomes of it."""


@pytest.fixture
def undone(world: World) -> Iterator[None]:
    yield
    if world.cache.exists() and (world.cache / TAG_NAME).read_text() == "another":
        shutil.rmtree(world.cache)
    for folder in (world.cache, world.cache / "answers", world.bundle.parent):
        if folder.exists():
            folder.chmod(0o700)


@pytest.mark.usefixtures("undone")
@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changed_the_command_is_run(world: World, change: str) -> None:
    world.settle(*BUILD)
    CHANGES[change](world)
    assert world.call(*BUILD).ran


@pytest.mark.parametrize("what", PASSING)
def test_what_appears_and_goes_is_seen(world: World, what: str) -> None:
    for change in PASSING[what]:
        world.settle(*BUILD)
        change(world)
        assert world.call(*BUILD).ran


def test_a_bundle_is_looked_at_wherever_it_stands(world: World) -> None:
    build = (*BUILD, "--output", "my.pycharm")
    world.settle(*build)
    flip(world.folder / "work/my.pycharm/model-own/bundle.json")
    assert world.call(*build).ran
    world.settle(*build)
    shutil.rmtree(world.folder / "work/my.pycharm/model-own")
    assert world.call(*build).ran


def test_a_link_on_the_way_to_a_profile_is_seen(world: World) -> None:
    there = replace(world, env={"PYTHONSAFEPATH": "1"})  # else the current folder counts as one of packages
    links = world.folder / "links"
    for name in ("one", "two"):
        (links / name).mkdir(parents=True)
        (links / name / "own.toml").write_text(PROFILE.replace("Own", name))
    (links / "way").symlink_to("one")
    (links / "child.toml").write_text('extends = "way/own.toml"\nid = "child"\ntitle = "Child"\n')
    for target, leads_to in (("way/own.toml", "two"), ("child.toml", "one")):
        plan = ("build", "model.onnx", "--target", f"../links/{target}", "--no-prove", "--format", "files")
        there.settle(*plan)
        (links / "way").unlink()
        (links / "way").symlink_to(leads_to)
        assert there.call(*plan).ran


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("pattern", ["answers/*", "answers"])
def test_the_answer_of_another_user_is_none(world: World, pattern: str) -> None:
    world.settle(*BUILD)
    places = tuple(world.cache.glob(pattern))
    in_cache(pattern, lambda path: os.chown(path, 65534, -1))(world)
    assert world.call(*BUILD).ran
    for path in places:
        os.chown(path, 0, -1)


@pytest.mark.parametrize("variable", ["BUNDLER_STEP_SECONDS", "CI", "PATH", "ANY_OTHER"])
def test_another_environment_is_another_call(world: World, variable: str) -> None:
    world.settle(*BUILD)
    value = f"{os.environ.get(variable, '')}:/nowhere" if variable == "PATH" else "7"
    assert replace(world, env={variable: value}).call(*BUILD).ran


def test_other_arguments_and_another_folder_are_another_call(world: World) -> None:
    world.settle(*BUILD)
    assert world.call(*BUILD, "--seed", "0").ran
    inner = [part.replace("samples", "../samples") if part == "samples" else part for part in BUILD]
    inner[1], inner[3] = "../model.onnx", "../own.toml"
    assert world.call(*inner, cwd="work/inner").ran


@pytest.mark.parametrize(
    "options", [("--progress", "json"), ("--cache-readonly",), ("--cache", "memory://team"), ("--jobs", "0")]
)
def test_what_depends_on_more_than_files_is_always_run(world: World, options: tuple[str, ...]) -> None:
    world.settle(*BUILD)
    for _ in range(3):
        assert world.call(*BUILD, *options).ran
        time.sleep(0.15)


@pytest.mark.parametrize("variable", ["BUNDLER_CACHE_READONLY", "BUNDLER_SANDBOX"])
def test_so_is_what_the_environment_asks_for(world: World, variable: str) -> None:
    there = replace(world, env={variable: "1"})
    for _ in range(3):
        assert there.call(*BUILD).ran
        time.sleep(0.15)


def test_a_file_with_a_time_to_come_is_never_trusted(world: World) -> None:
    """So is one that was written a moment ago: its next change could bear the same time."""
    model = world.folder / "work/model.onnx"
    later = time.time() + 3600
    os.utime(model, (later, later))
    for _ in range(3):
        assert world.call(*BUILD).ran
        time.sleep(0.15)
    os.utime(model)


def test_with_a_plugin_every_command_is_run(world: World) -> None:
    place = world.folder / "site/plugin-1.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1\n")
    (place / "entry_points.txt").write_text("[bundler.stages]\nothers = plugin:SPEC\n")
    for _ in range(3):
        assert world.call("targets", "list").ran
        time.sleep(0.15)
    shutil.rmtree(place)
    world.settle("targets", "list")


def test_a_plan_is_answered_until_a_step_would_run(world: World) -> None:
    world.settle(*BUILD)
    plan = ("plan", *BUILD[1:6], "--format", "files")
    planned = world.settle(*plan)
    assert "cached" in planned.out
    in_cache("records/*/*.json", Path.unlink)(world)
    for _ in range(3):
        said = world.call(*plan)
        assert said.ran
        assert "its result is no longer in the cache" in said.out
        time.sleep(0.15)


@pytest.mark.parametrize("options", [(), ("--json",), ("--group", "single")])
def test_the_list_of_targets_is_answered(world: World, options: tuple[str, ...]) -> None:
    world.settle(*BUILD)  # a list alone makes no cache
    answered = world.settle("targets", "list", *options)
    for path in (world.cache / "answers").iterdir():
        path.unlink()
    assert replace(world.call("targets", "list", *options), ran=False) == answered


def test_a_project_is_answered_until_its_file_or_its_lock_changes(world: World) -> None:
    work = world.folder / "work"
    (work / "bundler.toml").write_text(
        'targets = ["own.toml", "raspberry-pi-5"]\n[[models]]\npath = "model.onnx"\nsamples = "samples"\n'
    )
    build = ("build", "--no-prove", "--format", "files")
    answered = world.settle(*build, cwd="work/inner")
    assert answered.out.count("up to date") == 2
    assert "2 bundles" in answered.err
    for change in (
        lambda: touch(work / "bundler.toml"),
        lambda: touch(work / "bundler.lock"),
        lambda: (work / "inner/pyproject.toml").write_text(""),
        lambda: (work / "inner/bundler.toml").write_text("targets = []"),
    ):
        world.settle(*build, cwd="work/inner")
        change()
        assert world.call(*build, cwd="work/inner").ran
    for name in ("bundler.toml", "bundler.lock", "inner/pyproject.toml", "inner/bundler.toml"):
        (work / name).unlink()


def test_a_reader_that_went_away_is_no_error(world: World) -> None:
    world.settle(*BUILD)
    line = CommandLine(cache=world.cache, env={"PYTHONPATH": str(world.folder / "site")})
    ours, theirs = os.pipe()
    os.close(ours)
    mark = world.folder / "ran"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *BUILD],
        stdout=theirs,
        stderr=subprocess.PIPE,
        check=False,
        cwd=world.folder / "work",
        env={**line.environment(), "RAN": str(mark)},
    )
    os.close(theirs)
    assert (done.returncode, b"error" in done.stderr) == (0, False)


def call_on_terminal(world: World, *arguments: str, columns: int = 100) -> tuple[bool, list[str]]:
    """Whether the command ran, and what the terminal shows in the end, with colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    line = CommandLine(cache=world.cache, env={"PYTHONPATH": str(world.folder / "site"), "TERM": "xterm-256color"})
    dropped = {"NO_COLOR", "COLUMNS"}
    env = {name: value for name, value in line.environment().items() if name not in dropped}
    mark = world.folder / "ran"
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=world.folder / "work",
        env={**env, "RAN": str(mark)},
    ) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal is an error
            while part := os.read(ours, 1 << 16):
                shown += part
    os.close(ours)
    assert process.returncode == 0, shown
    return mark.read_text() == "True", draw(shown.decode())


def draw(text: str) -> list[str]:
    """The lines that a terminal shows after `text`: lines are cleared, and the cursor goes up."""
    lines, row = [""], 0
    for part in re.findall(r"\x1b\[[\d;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+|\x1b", text):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part == "\x1b[2K":
            lines[row] = ""
        elif part == "\x1b[1A":
            row -= 1
        elif part not in {"\r", "\x1b[?25l", "\x1b[?25h"}:
            lines[row] += part
    while lines and not re.sub(r"\x1b\[[\d;]*m", "", lines[-1]).strip():
        lines.pop()
    return lines


@pytest.mark.parametrize("arguments", [BUILD, ("targets", "list")], ids=" ".join)
def test_a_terminal_shows_the_same(world: World, arguments: tuple[str, ...]) -> None:
    world.settle(*BUILD)
    for _ in range(8):
        ran, shown = call_on_terminal(world, *arguments)
        if not ran:
            break
        full = shown
        time.sleep(0.15)
    assert not ran
    assert shown == full
    assert any("\x1b[" in line for line in shown)
    assert call_on_terminal(world, *arguments, columns=60)[0], "another width is another call"


def test_what_a_run_does_once_is_not_repeated(tmp_path: Path) -> None:
    """Making the cache private is said, and done, once."""
    world = World(folder=tmp_path, env={"XDG_CACHE_HOME": str(tmp_path / "home"), "BUNDLER_CACHE": ""})
    for name in ("site", "work"):
        (tmp_path / name).mkdir()
    models.save(models.mlp(), tmp_path / "work")
    build = ("build", "model.onnx", "--target", "linux-x64", "--no-prove", "--format", "files")
    world.settle(*build)
    for path in (tmp_path / "home/bundler/answers").iterdir():
        path.unlink()
    (tmp_path / "home/bundler").chmod(0o777)
    assert "it is now private to you" in world.call(*build).err
    assert "private" not in world.call(*build).err
    assert "private" not in world.settle(*build).err


@pytest.mark.parametrize(
    ("name", "value"), [("version", "3.99.0"), ("executable", "/another/python"), ("path", ["/another"])]
)
def test_another_interpreter_is_another_call(monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> None:
    before = answers._describe_process()
    monkeypatch.setattr(sys, name, value)
    assert answers._describe_process() != before


def test_other_folders_are_not_written_through_a_link(world: World) -> None:
    """Whoever may write to the cache could else have us remove the oldest JSON files of a folder of ours."""
    cache, ours = world.folder / "shared", world.folder / "ours"
    ours.mkdir()
    for number in range(60):
        (ours / f"{number}.json").write_text("{}")
    cache.mkdir()
    (cache / TAG_NAME).write_text(TAG)
    (cache / "answers").symlink_to(ours)
    for mode in (0o777, 0o700):
        cache.chmod(mode)
        assert replace(world, env={"BUNDLER_CACHE": str(cache)}).call("targets", "list").code == 0
        assert len(tuple(ours.iterdir())) == 60


@pytest.mark.parametrize("place", ["loop/cache", "n" * 300])
def test_a_cache_that_cannot_be_looked_into_keeps_no_answer(world: World, place: str) -> None:
    if not (world.folder / "loop").is_symlink():
        (world.folder / "loop").symlink_to("loop")
    said = replace(world, env={"BUNDLER_CACHE": str(world.folder / place)}).call("targets", "list")
    assert (said.code, said.err) == (0, "")


@pytest.mark.parametrize(
    "content", [None, [], {}, {"outputs": []}, {"outputs": {}, "files": {}, "contents": {}, "printed": [1]}]
)
def test_an_answer_of_another_form_is_none(world: World, content: object) -> None:
    world.settle(*BUILD)  # a list alone makes no cache
    expected = world.settle("targets", "list")
    for path in (world.cache / "answers").iterdir():
        path.write_bytes(seal(content, path.stem))
    said = world.call("targets", "list")
    assert said == replace(expected, ran=True)


def test_a_program_that_calls_twice_keeps_nothing_of_the_second_call(world: World) -> None:
    world.settle(*BUILD)
    program = """
import contextlib, sys
from bundler.cli import main
for group in ("no such group", "single"):
    sys.argv[1:] = ["targets", "list", "--group", group]
    with contextlib.suppress(SystemExit):
        main()
"""
    line = CommandLine(cache=world.cache, env={"PYTHONPATH": str(world.folder / "site")})
    kept = set((world.cache / "answers").iterdir())
    subprocess.run([sys.executable, "-c", program], check=True, env=line.environment(), capture_output=True)
    assert set((world.cache / "answers").iterdir()) == kept


def test_another_version_is_another_call(monkeypatch: pytest.MonkeyPatch) -> None:
    before = answers._describe_process()
    monkeypatch.setattr(answers, "__version__", "99")
    assert answers._describe_process() != before
