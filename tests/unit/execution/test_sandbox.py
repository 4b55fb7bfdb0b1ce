"""What runs in the sandbox reads what it is given, and reaches nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import pwd
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bundler.devices.local import LocalDevice, see_facts
from bundler.emitters.python.launching import Launch, start
from bundler.environments.sandbox import Sandbox, find_sandbox, python_folders
from bundler.environments.tools import ShutIn, run_tool
from bundler.execution.cache import Cache
from bundler.execution.executor import Executor
from bundler.execution.sources import Source, digest_source
from bundler.model.errors import EnvironmentMissingError, StageError
from bundler.model.events import Event, Message, Reporter, ignore
from tests.support import models
from tests.support.sandboxes import needs_sandbox
from tests.unit.execution.conftest import step

EVERYTHING = {
    *("read a private file", "list its folder", "write into its folder", "write beside the model"),
    *(
        "write into the cache",
        "write beside its output",
        "connect to this machine",
        "see another process",
        "end another process",
    ),
}
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox requires Linux")


@pytest.fixture
def private(tmp_path: Path) -> Path:
    path = tmp_path / "home" / ".ssh" / "id_ed25519"
    path.parent.mkdir(parents=True)
    path.write_text("a private key")
    return path


@pytest.fixture
def options(private: Path, cache: Cache) -> Iterator[dict[str, Any]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        yield {"private": str(private), "port": port, "pid": os.getpid(), "cache": str(cache.root)}


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return find_sandbox(tmp_path)


@pytest.fixture
def sources(tmp_path: Path, cache: Cache) -> Mapping[str, Source]:
    path = tmp_path / "models" / "model.txt"
    path.parent.mkdir()
    path.write_text("a model")
    return {"model": digest_source(path, (), cache)}


def spy(cache: Cache, sources: Mapping[str, Source], options: dict[str, Any], sandbox: Sandbox | None) -> Any:
    with Executor(cache, sandbox=sandbox) as executor:
        return executor.execute((step("spy", **options),), sources, Reporter(ignore, "x"))["spy"].facts


def test_without_it_a_step_reaches_all_that_the_user_reaches(
    cache: Cache, sources: Mapping[str, Source], options: dict[str, Any]
) -> None:
    (cache.root / "artifacts").mkdir(exist_ok=True)
    assert set(spy(cache, sources, options, None)["done"]) >= EVERYTHING


@needs_sandbox
def test_a_step_reads_its_input_and_reaches_nothing_else(
    cache: Cache, sources: Mapping[str, Source], options: dict[str, Any], sandbox: Sandbox
) -> None:
    (cache.root / "artifacts").mkdir(exist_ok=True)
    facts = spy(cache, sources, options, sandbox)
    assert facts["model"] == "a model"
    assert facts["done"] == []
    assert Path(facts["home"]).is_relative_to(cache.root / "tmp")


@needs_sandbox
def test_a_model_in_the_home_folder_shows_no_private_folder_of_it(
    cache: Cache, options: dict[str, Any], sandbox: Sandbox, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = private.parents[1]
    monkeypatch.setenv("HOME", str(home))
    (home / ".netrc").write_text("a password")
    (home / "model.txt").write_text("a model at home")
    sources = {"model": digest_source(home / "model.txt", (), cache)}
    facts = spy(cache, sources, {**options, "private": str(home / ".netrc")}, sandbox)
    assert facts["model"] == "a model at home"
    # Where this home is below /tmp, that is the sandbox's own, and what is written there is seen by nobody.
    assert set(facts["done"]) <= {"list its folder", "write into its folder", "write beside the model"}
    assert sorted(path.name for path in home.iterdir()) == [".netrc", ".ssh", "model.txt"]


def test_folders_of_all_of_a_users_files_show_their_plain_files_alone(
    tmp_path: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home of the account counts where HOME names another folder, and what holds sockets of other programs."""
    account = pwd.struct_passwd(("u", "x", os.getuid(), 0, "", str(private.parents[1]), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _: account)
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    (private.parents[1] / "model.onnx").write_text("a model")
    shown = Sandbox(program=tmp_path).showing((private.parents[1], tmp_path, Path("/tmp"), Path("/")))  # noqa: S108
    assert private.parents[1] / "model.onnx" in shown.visible
    assert not [path for path in shown.visible if path.is_dir()]


@needs_sandbox
def test_a_link_to_an_interpreter_shows_nothing_but_programs_beside_it(tmp_path: Path, sandbox: Sandbox) -> None:
    link = tmp_path / ".local" / "bin" / "python3"
    keys = tmp_path / ".local" / "share" / "keyrings" / "login"
    for path in (link, keys):
        path.parent.mkdir(parents=True)
    keys.write_text("a key")
    link.symlink_to(Path(sys.executable).resolve())
    own = tmp_path / "own"
    own.mkdir()
    script = f"import json, os; print(json.dumps(os.path.exists({str(keys)!r})))"
    shut_in = ShutIn(home=own, sandbox=sandbox.showing(python_folders(link)))
    assert json.loads(run_tool((str(link), "-c", script), "look", "python", shut_in)) is False


@needs_sandbox
def test_what_is_run_inside_has_no_terminal(sandbox: Sandbox, tmp_path: Path) -> None:
    """Who has one can type what a shell then runs."""
    inside = sandbox.showing(python_folders(Path(sys.executable)))
    command = inside.wrap((sys.executable, "-c", "open('/dev/tty')"), writable=(tmp_path,))
    child, terminal = pty.fork()
    if not child:
        os.execv(command[0], command)  # noqa: S606
    said = b""
    with contextlib.suppress(OSError):  # Linux ends a terminal with an error
        while piece := os.read(terminal, 4096):
            said += piece
    os.waitpid(child, 0)
    os.close(terminal)
    assert b"No such device or address: '/dev/tty'" in said


@needs_sandbox
def test_a_worker_that_was_started_early_is_the_one_that_runs(cache: Cache, tmp_path: Path, sandbox: Sandbox) -> None:
    model = models.save_external(models.mlp(), tmp_path / "models")
    with Executor(cache, sandbox=sandbox) as executor:
        executor.warm(model)
        (warmed,) = executor._workers._all
        sources = {"model": digest_source(model, (), cache)}
        executor.execute((step("inspect", name="x"),), sources, Reporter(ignore, "x"))
        assert not warmed.alive
        assert not executor._workers._all


@needs_sandbox
def test_a_model_behind_a_link_is_read(
    cache: Cache, sources: Mapping[str, Source], options: dict[str, Any], sandbox: Sandbox, tmp_path: Path
) -> None:
    link = tmp_path / "linked" / "model.txt"
    link.parent.mkdir()
    link.symlink_to(sources["model"].path)
    facts = spy(cache, {"model": digest_source(link, (), cache)}, options, sandbox)
    assert (facts["model"], facts["done"]) == ("a model", [])


@needs_sandbox
def test_a_step_that_crashes_or_hangs_inside_is_reported_as_outside(
    cache: Cache, sources: Mapping[str, Source], sandbox: Sandbox
) -> None:
    with Executor(cache, sandbox=sandbox) as executor:
        with pytest.raises(StageError, match=r"stage crash crashed in native code \(SIGABRT\)"):
            executor.execute((step("crash"),), sources, Reporter(ignore, "x"))
        with pytest.raises(StageError, match="stage hang did not finish within 1 s and was terminated"):
            executor.execute((step("hang", native=True),), sources, Reporter(ignore, "x"))


@needs_sandbox
def test_what_a_step_started_ends_with_it(
    cache: Cache, sources: Mapping[str, Source], options: dict[str, Any], sandbox: Sandbox, tmp_path: Path
) -> None:
    """Before its files are taken over: nobody can alter them behind the digests."""
    mark = f"linger-{tmp_path}"
    with Executor(cache, sandbox=sandbox) as executor:
        executor.execute((step("spy", **options, linger=mark),), sources, Reporter(ignore, "x"))
        assert wait_for(lambda: count_processes(mark, "python") == 0, 5), "what a step started outlived it"


@needs_sandbox
def test_a_link_in_place_of_a_result_is_refused(
    cache: Cache, sources: Mapping[str, Source], options: dict[str, Any], sandbox: Sandbox, private: Path
) -> None:
    with Executor(cache, sandbox=sandbox) as executor, pytest.raises(StageError, match="replaced the folder"):
        executor.execute((step("spy", **options, link=str(private.parent)),), sources, Reporter(ignore, "x"))


@needs_sandbox
def test_no_step_outlives_a_killed_parent(tmp_path: Path, distribution: Path, sources: Mapping[str, Source]) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        f"sys.path[:0] = [{str(distribution)!r}, {str(Path(__file__).parents[3])!r}]\n"
        "from bundler.environments.sandbox import find_sandbox\n"
        "from bundler.execution.cache import open_cache\n"
        "from bundler.execution.executor import Executor\n"
        "from bundler.execution.sources import digest_source\n"
        "from bundler.model.events import SILENT\n"
        "from tests.unit.execution.conftest import step\n"
        f"cache = open_cache({str(tmp_path / 'other')!r})\n"
        f"model = digest_source(Path({str(sources['model'].path)!r}), (), cache)\n"
        f"with Executor(cache, sandbox=find_sandbox(Path({str(tmp_path)!r}))) as executor:\n"
        "    executor.execute((step('patient', native=True),), {'model': model}, SILENT)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script])
    try:
        marked = wait_for(lambda: count_processes(str(tmp_path / "other")) > 0 and process.poll() is None)
        assert marked, "no worker started"
    finally:
        process.kill()
        process.wait()
    assert wait_for(lambda: count_processes(str(tmp_path / "other")) == 0), "a worker outlived its parent"


def count_processes(word: str, program: str = "bwrap") -> int:
    """Processes of a program, sandboxes if not said otherwise, whose command line holds `word`."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            data = path.read_bytes()
        except OSError:
            continue
        found += program.encode() in data.split(b"\0", 1)[0] and word.encode() in data
    return found


def wait_for(condition: Any, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


@needs_sandbox
def test_code_of_the_users_own_runs_outside_and_is_reported(
    cache: Cache, sources: Mapping[str, Source], sandbox: Sandbox, private: Path
) -> None:
    reported: list[Event] = []
    with Executor(cache, sandbox=sandbox) as executor:
        executor.execute((step("dice", ask=str(private)),), sources, Reporter(reported.append, "x"))
    texts = [event.note.text for event in reported if isinstance(event, Message)]
    assert [event.note.level for event in reported if isinstance(event, Message)] == ["safety"]
    assert texts == ["dice calls your code, which runs outside the sandbox, together with the models that it opens"]


@needs_sandbox
def test_a_bundle_that_is_verified_reaches_nothing(options: dict[str, Any], sandbox: Sandbox) -> None:
    script = (
        "import json, os, socket, sys\n"
        "from pathlib import Path\n"
        "found = []\n"
        f"for attempt in (lambda: Path({options['private']!r}).read_bytes(),\n"
        f"    lambda: socket.create_connection(('127.0.0.1', {options['port']}), 2)):\n"
        "    try: found.append(str(attempt()))\n"
        "    except OSError: pass\n"
        "Path('own').write_text('x')\n"
        "print(json.dumps({'bundle': found, 'home': os.environ['HOME'] == os.getcwd()}))\n"
    )
    inside = sandbox.showing(python_folders(Path(sys.executable)))
    launch = Launch(device=LocalDevice(facts=see_facts()), command=(sys.executable, "-c", script), environment={})
    assert start(launch, ()).report["bundle"], "without a sandbox it reaches something"
    shut = Launch(device=LocalDevice(facts=see_facts(), sandbox=inside), command=launch.command, environment={})
    assert start(shut, ()).report == {"bundle": [], "home": True}


@needs_sandbox
def test_what_installs_a_bundle_is_shut_in_too(
    options: dict[str, Any], sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a key")
    monkeypatch.setenv("UV_INDEX_URL", "https://name:password@index.example")
    script = f"import json, os; print(json.dumps([os.path.exists({options['private']!r}), *os.environ]))"
    inside = sandbox.showing(python_folders(Path(sys.executable)))
    own = tmp_path / "own"
    own.mkdir()
    shut_in = ShutIn(home=own, sandbox=inside)
    seen, *names = json.loads(run_tool((sys.executable, "-c", script), "see", "python", shut_in))
    assert seen is False
    assert not {"AWS_SECRET_ACCESS_KEY", "UV_INDEX_URL"} & set(names)


def test_where_there_is_none_it_is_said_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentMissingError, match="bubblewrap is not installed") as caught:
        find_sandbox(tmp_path)
    assert "apt-get install bubblewrap" in (caught.value.hint or "")


def test_where_the_system_gives_none_its_words_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentMissingError, match="bubblewrap cannot make a sandbox on this machine") as caught:
        find_sandbox(tmp_path)
    assert caught.value.details == ("bwrap: No permissions to create new namespace",)
