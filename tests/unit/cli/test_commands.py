"""The commands are known without being imported, and an option is declared once."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from bundler.api import BuildRequest, Settings
from bundler.cli.application import app
from bundler.cli.commands import COMMANDS, Commands
from bundler.cli.options import Given, Json, OptionsOf, take_options
from bundler.cli.requests import make_requests
from bundler.model.options import Option, find_options
from tests.support.command_line import PROGRAM

LOADED = "print(*(name for name in sys.modules if name.startswith(('bundler.', 'pydantic', 'rich.', 'onnx'))))"


def list_paths(table: Commands = COMMANDS, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, row in table.items():
        yield (*above, name)
        if not isinstance(row, str):
            yield from list_paths(row[1], (*above, name))


@pytest.mark.parametrize("path", [(), *list_paths()], ids=" ".join)
def test_every_command_has_help_and_no_command_lacks_its_line(path: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"Usage: {' '.join(('bundler', *path))} ")


@pytest.mark.parametrize("path", [path for path in list_paths() if path[-1] not in {"targets", "cache"}], ids=" ".join)
def test_examples_of_a_command_can_be_copied_from_a_narrow_terminal(path: tuple[str, ...]) -> None:
    """Each is one whole command line of this command, which a shell and the parser take."""
    result = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "40", "TERMINAL_WIDTH": "40"})
    _, _, shown = result.output.partition("\n  Example")
    for line in shown.splitlines()[1:]:
        words = shlex.split(line, comments=True)
        assert words[: len(path) + 1] == (["bundler", *path] if words else [])
        assert CliRunner().invoke(app, [*words[1:], "--help"]).exit_code == 0, line
    assert f"bundler {' '.join(path)}" in shown


def test_the_help_of_an_option_has_at_most_20_words() -> None:
    options = [option for kind in (BuildRequest, Settings) for option in find_options(kind).values()]
    assert {option.flag: option.help for option in options if len(option.help.split()) > 20} == {}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["targets", "--help"], ["bild"]])
def test_what_lists_commands_imports_none(arguments: list[str]) -> None:
    code = (
        f"import sys; from bundler.cli.application import _run; sys.argv = ['bundler', *{arguments!r}]\ntry: _run()\n"
    )
    code += f"except SystemExit: pass\n{LOADED}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.rsplit("\n", 2)[-2].split()
    assert "bundler.cli.application" in loaded
    heavy = ("pydantic", "rich", "onnx", "bundler.cli.commands.", "bundler.catalogue", "bundler.profiles")
    assert [name for name in loaded if name.startswith(heavy)] == []


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("bundler b", ["build", "bench"]),
        ("bundler targets s", ["show", "schema"]),
        ("bundler build --packa", ["--package-name"]),
        ("bundler cache trim --ol", ["--older"]),
        ("bundler build m.onnx --target snapdragon-8g3", ["snapdragon-8g3"]),
        ("bundler plan m.onnx -t web-", ["web-wasm", "web-webgpu", "web-webnn"]),
        ("bundler targets show web-wa", ["web-wasm"]),
        ("bundler init m.onnx --target web-wa", ["web-wasm"]),
        ("bundler verify dist/m-linux-x64 --on qemu", ["qemu-aarch64"]),
        ("bundler build m.onnx --on b", ["browser"]),
    ],
)
def test_commands_options_and_their_values_are_completed(typed: str, completed: list[str]) -> None:
    words = typed.split()
    settings = {"_BUNDLER_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run([PROGRAM], env={**os.environ, **settings}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == completed


@pytest.mark.parametrize(
    ("line", "command"),
    [("build m.onnx -t", "bundler build"), ("targets recommend m.onnx --device", "bundler targets recommend")],
)
def test_an_option_without_its_value_is_answered_with_the_help_of_its_command(line: str, command: str) -> None:
    done = subprocess.run([PROGRAM, *line.split()], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith(f"hint: `{command} --help` shows the options\n")


def test_an_option_of_an_earlier_release_is_answered_with_its_replacement() -> None:
    done = subprocess.run(
        [PROGRAM, "verify", "x", "--browser", "chromium"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "error: No such option: --browser\nhint: use --on browser:PROGRAM instead\n"


def test_a_target_or_a_model_that_is_given_twice_counts_once() -> None:
    requests = make_requests([Path("m.onnx")] * 2, ["linux-x64", "web-wasm", "linux-x64"], {}, ())
    assert [request.target for request in requests] == ["linux-x64", "web-wasm"]


def test_a_plan_takes_what_changes_a_step_or_the_name_of_the_bundle() -> None:
    result = CliRunner().invoke(app, ["plan", "--help"], env={"COLUMNS": "100"})
    assert all(f"  {option}" in result.output for option in ("--seed ", "--name, --bundle ", "--samples "))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request with one option of each kind."""

    count: Annotated[int, Option("--count", "-c", least=1, help="How many.")] = 3
    loud: Annotated[bool, Option("--loud", variable="TEST_LOUD", help="Aloud.")] = False
    kept: Annotated[bool, Option("--no-keep", help="Throw it away.")] = True
    marks: Annotated[tuple[str, ...], Option("--mark", help="Marks.", read=tuple, show=lambda marks: marks)] = ()
    inner: dict[str, int] = field(default_factory=dict)


def invoke(arguments: list[str], kind: Any, **env: str) -> Any:
    """What a command with the options of `Asked`, in a parameter of the type `kind`, gets."""
    heard: list[Any] = []

    def run(*, asked: Any, json: Json = False) -> None:
        heard.append((asked, json))

    run.__annotations__["asked"] = kind
    command = typer.Typer()
    command.command()(take_options(run))
    result = CliRunner().invoke(command, arguments, env=env)
    assert result.exit_code == 0, result.output
    return heard[0][0]


def test_a_value_has_what_was_given_and_the_defaults_of_the_rest() -> None:
    assert invoke([], Asked) == Asked()
    arguments = ["-c", "5", "--loud", "--no-keep", "--mark", "a", "--mark", "b", "--json"]
    assert invoke(arguments, Asked) == Asked(count=5, loud=True, kept=False, marks=("a", "b"))


def test_what_was_given_is_distinguished_from_a_default_of_the_same_value() -> None:
    kind = Annotated[Given, OptionsOf(Asked)]
    assert invoke([], kind) == {}
    assert invoke(["--count", "3", "--no-keep"], kind) == {"count": 3, "kept": False}
    assert invoke([], kind, TEST_LOUD="1") == {"loud": True}
    assert invoke(["--mark", "a"], Annotated[Asked, OptionsOf(Asked, only=("marks",))]) == Asked(marks=("a",))


def test_help_shows_the_default_and_the_bounds() -> None:
    def run(*, asked: Asked) -> None:
        """Nothing."""

    run.__annotations__["asked"] = Asked
    command = typer.Typer(rich_markup_mode=None)
    command.command()(take_options(run))
    shown = CliRunner().invoke(command, ["--help"], env={"COLUMNS": "100"}).output
    assert "How many.  [default: 3; x>=1]" in shown
    assert "--no-keep" in shown
    assert "env var: TEST_LOUD" in shown


@pytest.mark.parametrize("kind", [BuildRequest, Settings])
def test_no_two_options_have_one_flag(kind: type) -> None:
    options = find_options(kind).values()
    flags = [flag for option in options for flag in (option.flag, option.short) if flag]
    assert len(flags) == len(set(flags))
