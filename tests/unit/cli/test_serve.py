import pytest
from typer.testing import CliRunner

from bundler.cli.application import app


@pytest.mark.parametrize("command", ["serve", "verify", "bench"])
def test_help_shows_examples_and_what_the_browser_is_for(command: str, snapshot: object) -> None:
    result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"})
    assert result.exit_code == 0
    assert result.output == snapshot


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    assert CliRunner().invoke(app, ["serve", "bundle", "--port", port]).exit_code == 2
