"""What `bundler targets providers` prints."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner, Result

from bundler.catalogue import provider_listing
from bundler.cli.application import app
from bundler.cli.commands.targets.providers import run as print_providers
from bundler.model.errors import UsageError
from bundler.providers.knowledge import (
    Availability,
    Compiler,
    Deferral,
    GraphRules,
    OptionRule,
    OptionTable,
    Presence,
    ProviderKnowledge,
)
from bundler.providers.registry import provider_names

RUNNER = CliRunner()


def run(*arguments: str) -> Result:
    result = RUNNER.invoke(app, ["targets", "providers", *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def knowledge(**values: object) -> ProviderKnowledge:
    given = {"name": "own", "runtime_name": "Own", "title": "Own chip", "package": "onnxruntime-own", **values}
    return ProviderKnowledge(**given)


@pytest.fixture
def registered(monkeypatch):
    """Registers the providers that the test puts into it, beside nothing else."""
    found: dict[str, ProviderKnowledge] = {}
    monkeypatch.setattr(provider_listing, "provider_names", lambda: tuple(found))
    monkeypatch.setattr(provider_listing, "find_provider", found.__getitem__)
    return found


def test_list_tells_where_each_is_how_its_work_is_done_and_what_became_of_it(registered, snapshot):
    registered["plain"] = knowledge(name="plain", title="Plain", package="onnxruntime")
    registered["ahead"] = knowledge(
        name="ahead",
        title="Compiled ahead",
        presence=Presence(availability=(Availability(package="onnxruntime-ahead", versions=">=2", module="ahead"),)),
        compiler=Compiler(stage="compile", environment="host"),
    )
    registered["late"] = knowledge(name="late", title="Compiled late", deferral=Deferral(kind="cache", thing="blob"))
    registered["either"] = knowledge(
        name="either",
        title="Compiled here or there",
        compiler=Compiler(stage="compile", environment="host", by_default=False),
        deferral=Deferral(kind="context", thing="blob"),
    )
    registered["lost"] = knowledge(
        name="lost", title="Lost", presence=Presence(gone="Release 2 removed it", instead="plain")
    )
    assert run().output == snapshot


@pytest.mark.parametrize("name", ["coreml", "nnapi", "rocm", "vitisai", "webgpu-native", "armnn"])
def test_page_of_one_tells_all_of_it(name, snapshot):
    assert run(name).output == snapshot


def test_page_tells_of_the_compiler_and_its_options(registered, snapshot):
    option = OptionRule(key="level", values=("low", "high"), default="low", meaning="How hard it tries.")
    compiler = Compiler(stage="compile", environment="host", options=(option,), executes=True)
    registered["own"] = knowledge(compiler=compiler, graph=GraphRules(proofs=("context", "engine", "compatibility")))
    assert run("own").output == snapshot


def test_every_provider_has_a_page_and_a_line():
    listed = {entry["name"]: entry for entry in json.loads(run("--json").output)}
    assert tuple(listed) == provider_names()
    lines = run().output
    for name, entry in listed.items():
        assert f"{name} " in lines
        page = json.loads(run(name, "--json").output)
        assert page["summary"] == entry
        assert run(name).output.startswith(f"{name}: {entry['title']}")


def test_the_runtimes_name_is_taken_too():
    assert run("CoreMLExecutionProvider").output == run("coreml").output


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match=r'did you mean "coreml"\?'):
        run("coremll")


def test_words_of_another_package_cannot_command_the_terminal(registered, capsys):
    registered["own"] = knowledge(
        title="\x1b[2J[red]own",
        presence=Presence(gone="gone\x1b]0;x\x07"),
        options=OptionTable(rules=(OptionRule(key="k\x1b[1m", default="\x07", meaning="m\x1b[0m"),)),
    )
    print_providers(None, json=False)
    print_providers("own", json=False)
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "[red]own" in said


def test_a_terminal_gets_a_table(registered, monkeypatch, capsys):
    registered["own"] = knowledge(title="[bold]Own\x1b[2J")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_providers(None, json=False)
    said = capsys.readouterr().out
    assert "[bold]Own\\x1b[2J" in said
    assert "onnxruntime-own" in said


def test_no_ml_tool_and_no_schema_is_imported():
    code = (
        "import sys; from bundler.cli.commands.targets.providers import run;"
        "run(None, json=True); run('coreml', json=False);"
        "print([name for name in ('onnx', 'onnxruntime', 'numpy', 'pydantic') if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
