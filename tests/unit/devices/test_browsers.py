from pathlib import Path

import pytest

from bundler.devices.browser import programs
from bundler.devices.browser.programs import NONE_FOUND, VARIABLE, ask_version, find_browser, is_named
from bundler.model.errors import EnvironmentMissingError


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with an empty path and none of the usual places."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(programs, "_places", lambda: iter(()))
    (tmp_path / "bin").mkdir()
    return tmp_path


def install(folder: Path, name: str, text: str = "#!/bin/sh\n") -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_machine_without_a_browser_has_none() -> None:
    assert find_browser() is None
    assert not is_named("")
    assert "--on browser:PATH" in NONE_FOUND


def test_chromium_comes_before_its_relatives(bare_machine: Path) -> None:
    install(bare_machine / "bin", "google-chrome")
    assert find_browser() == bare_machine / "bin" / "google-chrome"
    install(bare_machine / "bin", "chromium")
    assert find_browser() == bare_machine / "bin" / "chromium"


def test_browsers_that_are_on_no_path_are_found(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = install(bare_machine, "Google Chrome")
    monkeypatch.setattr(programs, "_places", lambda: iter((bare_machine / "Chromium", place)))
    assert find_browser() == place


@pytest.mark.parametrize(("system", "part"), [("Darwin", "/Applications/Chromium.app"), ("Windows", "msedge.exe")])
def test_each_system_has_its_places(monkeypatch: pytest.MonkeyPatch, system: str, part: str) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setenv("PROGRAMFILES", "C:/Program Files")
    assert any(part in str(place) for place in programs._places())


def test_a_path_and_a_command_can_be_named(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(bare_machine / "bin", "chromium")
    mine = install(bare_machine, "mine")
    install(bare_machine / "bin", "theirs")
    assert find_browser(str(mine)) == mine
    assert find_browser("theirs") == bare_machine / "bin" / "theirs"
    monkeypatch.setenv(VARIABLE, str(mine))
    assert find_browser() == mine
    assert is_named("")


def test_one_that_is_named_and_not_there_is_an_error(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(bare_machine / "bin", "chromium")
    with pytest.raises(EnvironmentMissingError, match="the browser /nowhere/chrome does not exist"):
        find_browser("/nowhere/chrome")
    (bare_machine / "text").write_text("no program")
    with pytest.raises(EnvironmentMissingError, match="does not exist"):
        find_browser(str(bare_machine / "text"))
    monkeypatch.setenv(VARIABLE, "nothing-of-this-name")
    with pytest.raises(EnvironmentMissingError) as caught:
        find_browser()
    assert VARIABLE in caught.value.details[0]


def test_the_version_is_what_it_calls_itself(bare_machine: Path) -> None:
    reported = install(bare_machine, "a", "#!/bin/sh\necho 'Chromium 156.0.1 built on Debian GNU/Linux 12'\n")
    assert ask_version(reported) == "Chromium 156.0.1"
    assert ask_version(install(bare_machine, "silent")) is None
    assert ask_version(bare_machine / "nothing") is None
