import contextlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bundler.cli.application import app
from bundler.model.errors import ProfileError, UsageError
from bundler.profiles.resolve import resolve_target

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    result = RUNNER.invoke(app, ["targets", *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_list_shows_targets_by_group(snapshot):
    assert run("list").output == snapshot


def test_list_as_json_is_one_document():
    listed = {entry["id"]: entry for entry in json.loads(run("list", "--json").output)}
    assert listed["raspberry-pi-5"]["group"] == "Single-board computers"
    assert listed["windows-x64"]["providers"] == ["cpu"]


def test_methods_are_listed_with_how_to_take_one(snapshot):
    assert run("methods", "web-webnn").output == snapshot


def test_list_does_not_import_the_schema():
    code = "import sys, bundler.catalogue.listing as l; l.list_targets(); print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_show_gives_toml_and_origins():
    shown = run("show", "linux-x64", "--set", "accuracy.absolute=0.25").output
    assert "absolute = 0.25  # --set" in shown
    document = json.loads(run("show", "linux-x64", "--json").output)
    assert document["profile"]["platform"]["system"] == "linux"
    assert document["origins"]["platform.system"] == "targets/_base/glibc-x64.toml"


def test_schema_is_json():
    assert json.loads(run("schema").output)["title"] == "bundler target profile"


@pytest.mark.parametrize("extends", ["raspberry-pi-5", "raspberry-pi", "linux-x64"])
def test_new_writes_a_profile_that_validates(extends):
    assert "wrote my-board.toml" in run("new", "my-board", "--extends", extends).output
    assert run("validate", "my-board.toml").output == "my-board.toml: valid\n"
    assert resolve_target("./my-board.toml").id == "my-board"


def test_new_extends_a_file_by_its_relative_path(folder):
    (folder / "boards").mkdir()
    run("new", "first", "--extends", "linux-x64")
    run("new", "second", "--extends", "./first.toml", "-o", "boards/second.toml")
    assert 'extends = "../first.toml"' in (folder / "boards" / "second.toml").read_text()
    assert resolve_target("boards/second.toml").platform.system == "linux"


def test_new_text(snapshot, folder):
    run("new", "my-board", "--extends", "raspberry-pi-5")
    assert (folder / "my-board.toml").read_text() == snapshot


def test_new_keeps_a_file_that_exists(folder):
    (folder / "my-board.toml").write_text("mine")
    with pytest.raises(UsageError, match="exists"):
        run("new", "my-board", "--extends", "linux-x64")
    assert (folder / "my-board.toml").read_text() == "mine"


@pytest.mark.parametrize("name", ["My Board", "", "../x", 'a"\nb', "-x"])
def test_new_refuses_a_name_that_is_no_identifier(name, folder):
    with pytest.raises(UsageError, match="is not a valid target name"):
        run("new", "--extends", "linux-x64", "--", name)
    assert list(folder.iterdir()) == []


def test_new_says_what_an_incomplete_base_lacks(folder):
    with pytest.raises(ProfileError) as raised:
        run("new", "my-board", "--extends", "onnxruntime-cpu")
    assert "platform" in raised.value.details[0]
    assert list(folder.iterdir()) == []


def test_validate_tells_the_problems_of_all(folder):
    (folder / "a.toml").write_text('extends = "linux-x64"\n[platform]\ncpu = "cortex-a76"\n')
    (folder / "b.toml").write_text('extends = "linux-x64"\ntitel = "b"\n')
    with pytest.raises(ProfileError) as raised:
        run("validate", "a.toml", "b.toml", "linux-x64")
    assert raised.value.message == "2 of 3 profiles are not valid"
    assert [line.split(":")[0] for line in raised.value.details] == ["a.toml", "b.toml"]


def test_validate_as_json_is_one_document_with_the_exit_code(folder):
    (folder / "b.toml").write_text('extends = "linux-x64"\ntitel = "b"\n')
    result = run("validate", "b.toml", "linux-x64", "--json")
    assert result.exit_code == 4
    assert json.loads(result.output) == [
        {"profile": "b.toml", "valid": False, "problems": ['b.toml: titel: unknown key; did you mean "title"?']},
        {"profile": "linux-x64", "valid": True, "problems": []},
    ]


def run_on_terminal(**environment: str) -> str:
    """What `bundler targets list` shows a person: its standard output is a pseudo-terminal."""
    code = "from bundler.cli.commands.targets.list import run; run(json=False)"
    reader, writer = os.openpty()
    settings = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "COLUMNS": "120", **environment}
    with subprocess.Popen([sys.executable, "-c", code], stdout=writer, env=settings) as process:
        os.close(writer)
        shown = b""
        # Linux answers EIO, not an empty read, when the last writer has gone.
        with contextlib.suppress(OSError):
            while piece := os.read(reader, 4096):
                shown += piece
    os.close(reader)
    assert process.returncode == 0
    return shown.decode()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")
def test_list_is_a_table_on_a_terminal_and_obeys_no_color():
    coloured = run_on_terminal()
    assert "\x1b[" in coloured
    assert re.search(r"raspberry-pi-5 +Raspberry Pi 5 +linux arm64 +cpu", coloured)
    assert "36m" not in run_on_terminal(NO_COLOR="1")


def test_list_shows_the_groups_that_are_asked_for():
    listed = json.loads(run("list", "--group", "board", "--json").output)
    assert {entry["group"] for entry in listed} == {"Single-board computers"}
    assert "raspberry-pi-5" in run("list", "--group", "BOARD").output


def test_list_says_which_groups_there_are():
    with pytest.raises(UsageError, match='no group of targets matches "toasters"') as raised:
        run("list", "--group", "toasters")
    assert "Browsers" in (raised.value.hint or "")


def test_show_tells_what_becomes_of_each_variant():
    assert "# cpu (CPU): the runtime loads the model as shipped" in run("show", "linux-x64").output
    (variant,) = json.loads(run("show", "linux-x64", "--json").output)["variants"]
    assert variant["fate"] == "as it is"
