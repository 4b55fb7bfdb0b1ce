"""What a target's file may not decide: which programs run on this machine."""

from pathlib import Path

import pytest

from bundler.model.errors import ProfileError
from bundler.profiles.commands import check_commands
from bundler.profiles.resolve import resolve_layers

OWN = 'extends = "linux-x64"\nid = "mine"\ntitle = "Mine"\n'
COMMAND = '[accuracy.metric]\ncommand = ["judge.sh", "{answers}"]\nleast = 0\n'
FUNCTION = '[accuracy.metric]\npython = "judge.py:measure"\nleast = 0\n'
GIVEN = ('accuracy.metric.command=["mine.sh", "{answers}"]',)
WHOLE = 'accuracy.metric={command=["mine.sh", "{answers}"], least=0}'


def write(folder: Path, text: str, name: str = "mine.toml", head: str = OWN) -> str:
    (folder / name).write_text(head + text)
    return str(folder / name)


@pytest.mark.parametrize(("text", "named"), [(COMMAND, "judge.sh"), (FUNCTION, "judge.py:measure")])
@pytest.mark.parametrize("overrides", [(), ("accuracy.metric.least=1",), ("accuracy.absolute=1",)])
def test_a_files_program_is_refused_by_its_name(
    tmp_path: Path, text: str, named: str, overrides: tuple[str, ...]
) -> None:
    with pytest.raises(ProfileError, match=f'would run "{named}"') as caught:
        check_commands(resolve_layers(write(tmp_path, text), overrides))
    assert "--trust-target" in str(caught.value.hint)
    assert "mine.toml" in caught.value.message


def test_nor_may_a_file_that_it_extends(tmp_path: Path) -> None:
    write(tmp_path, COMMAND, "base.toml")
    child = write(tmp_path, "", head='extends = "base.toml"\nid = "child"\ntitle = "Child"\n')
    with pytest.raises(ProfileError, match=r"base\.toml: accuracy\.metric\.command would run"):
        check_commands(resolve_layers(child))


def test_a_word_of_a_files_command_is_not_the_whole_of_it(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="would run"):
        check_commands(resolve_layers(write(tmp_path, COMMAND), ("accuracy.metric.command.1={reference}{answers}",)))


def test_a_file_with_the_name_of_the_option_is_still_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, COMMAND, "--set")
    with pytest.raises(ProfileError, match="would run"):
        check_commands(resolve_layers("./--set"))


@pytest.mark.parametrize("text", ["", COMMAND])
@pytest.mark.parametrize("overrides", [(*GIVEN, "accuracy.metric.least=0"), (WHOLE,)])
def test_what_the_user_names_runs(tmp_path: Path, text: str, overrides: tuple[str, ...]) -> None:
    check_commands(resolve_layers(write(tmp_path, text), overrides))


def test_a_target_without_a_metric_has_nothing_to_refuse() -> None:
    check_commands(resolve_layers("linux-x64"))
