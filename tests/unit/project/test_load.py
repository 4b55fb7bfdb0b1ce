from pathlib import Path

import pytest

from bundler.model.errors import UsageError
from bundler.pipeline.given import source_environments
from bundler.profiles.resolve import resolve_target
from bundler.project.load import find_project, overrides_for
from bundler.project.requests import project_requests
from bundler.project.schema import Project

TEXT = """
targets = ["linux-x64", "raspberry-pi-5"]

[[models]]
path = "model.onnx"
dimensions = { batch = 1 }

[accuracy]
absolute = 1e-5

[overrides."raspberry-*"]
optimization = { format = "onnx" }
"""


def test_the_nearest_project_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "bundler.toml").write_text(TEXT)
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    found = find_project(inner)
    assert found.root == tmp_path
    assert found.project.models[0].dimensions == {"batch": 1}


def test_a_table_in_pyproject_is_a_project_file_and_a_pyproject_without_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.bundler]\nmodels = [{ path = "model.onnx" }]\n')
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert find_project(inner).root == tmp_path


def test_overrides_apply_by_glob_after_gates() -> None:
    project = Project.model_validate(
        {
            "models": ({"path": "m.onnx"},),
            "accuracy": {"absolute": 1e-5},
            "overrides": {"raspberry-*": {"optimization": {"format": "onnx", "simplifier": "onnxscript"}}},
        }
    )
    assert overrides_for(project, "linux-x64", Path("/project")) == ("accuracy.absolute=1e-05",)
    assert overrides_for(project, "raspberry-pi-5", Path("/project")) == (
        "accuracy.absolute=1e-05",
        'optimization.format="onnx"',
        'optimization.simplifier="onnxscript"',
    )


def test_limits_of_an_output_and_a_metric_reach_the_profile() -> None:
    accuracy = {
        "outputs": {"scores.0 \u2028": {"sqnr_db": 30.0}},
        "metric": {"command": ("judge", "{answers}"), "least": 0.9},
    }
    project = Project.model_validate({"models": ({"path": "m.onnx"},), "accuracy": accuracy})
    found = resolve_target("linux-x64", overrides_for(project, "linux-x64", Path("/project"))).accuracy
    assert found.outputs["scores.0 \u2028"].sqnr_db == 30.0
    assert found.metric is not None
    assert (found.metric.command, found.metric.least) == (("judge", "{answers}"), 0.9)


MISTAKES = """\
# a comment
targets = [
    "linux-x64",
    "linux-arm64",
]
output = 3

[[models]]
path = "a.onnx"

[[models]]
nmae = "x"
dimensions = { batch = "1" }

[accuracy]
metric = { drop = 1.0 }
absolut = 1e-3

[overrides."linux-*".optimization]
level = "bsic"

[overrides."rasp*"]
variants.cpu.sesion.x = 1
"""


def test_every_mistake_is_reported_at_once_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "bundler.toml").write_text(MISTAKES)
    with pytest.raises(UsageError, match=r"bundler\.toml is not a valid project file: 8 problems") as caught:
        find_project(tmp_path)
    reported = caught.value.details
    assert [line.split(": ", 2)[:2] for line in reported] == [
        ["bundler.toml:6", "output"],
        ["bundler.toml:11", "models[1].path"],
        ["bundler.toml:12", "models[1].nmae"],
        ["bundler.toml:13", "models[1].dimensions.batch"],
        ["bundler.toml:16", "accuracy.metric"],
        ["bundler.toml:17", "accuracy.absolut"],
        ["bundler.toml:20", 'overrides."linux-*".optimization.level'],
        ["bundler.toml:23", 'overrides."rasp*".variants.cpu.sesion'],
    ]
    assert reported[1].endswith("is missing (The ONNX file, relative to the project file)")
    assert reported[2].endswith('unknown key; did you mean "name"?')
    assert reported[6].partition(" (")[0].endswith('expected one of auto, none, basic, extended; did you mean "basic"?')


def test_a_target_that_is_not_there_is_reported_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "bundler.toml").write_text('[[models]]\npath = "a.onnx"\ntargets = ["linux-x46", "own/board.toml"]\n')
    with pytest.raises(UsageError) as caught:
        find_project(tmp_path)
    (reported,) = caught.value.details
    assert reported.startswith(
        'bundler.toml:3: models[0].targets[0]: unknown target "linux-x46"; did you mean "linux-x64"'
    )


def test_lines_of_a_table_in_pyproject_are_those_of_the_whole_file(tmp_path: Path) -> None:
    text = '[project]\nname = "x"\n\n[tool.bundler]\nmodels = [{ path = "a.onnx" }]\ntarget = []\n'
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError) as caught:
        find_project(tmp_path)
    assert caught.value.details == ('pyproject.toml:6: target: unknown key; did you mean "targets"?',)


def test_a_key_cannot_control_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "bundler.toml").write_text('models = [{ path = "a.onnx" }]\n"\\u001b[2J" = "\\u001b[2J"\n')
    with pytest.raises(UsageError) as caught:
        find_project(tmp_path)
    assert "\x1b" not in "".join(caught.value.details)


def test_text_that_is_no_toml_is_reported_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "bundler.toml").write_text("\na = [1,\n b = 3\n")
    with pytest.raises(UsageError, match="not valid TOML") as caught:
        find_project(tmp_path)
    assert caught.value.details[0].startswith("bundler.toml:3: ")


@pytest.mark.parametrize("text", ["x = " + "[" * 5000, "x = " + "9" * 5000, "#" * 1_000_001, "x = '\udc80'"])
def test_text_that_breaks_a_parser_is_no_toml(tmp_path: Path, text: str) -> None:
    (tmp_path / "bundler.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match="not valid TOML"):
        find_project(tmp_path)


def test_without_a_project_file_the_hint_says_both_ways(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        find_project(tmp_path)
    assert "bundler init" in (caught.value.hint or "")


def test_what_does_not_fit_a_target_is_reported_by_its_line(tmp_path: Path) -> None:
    """Only the whole profile can tell, and it knows no line of this file."""
    text = """\
targets = ["linux-x64"]
models = [{ path = "m.onnx" }]

[overrides."*".precision]
method = "int8"

[overrides."raspberry-*".precision]
method = "int4"
"""
    (tmp_path / "bundler.toml").write_text(text)
    loaded = find_project(tmp_path)
    with pytest.raises(UsageError, match=r"bundler\.toml does not fit the target linux-x64") as caught:
        project_requests(loaded)
    (reported,) = caught.value.details
    assert reported.startswith('bundler.toml:5: precision.method: unknown precision method "int8"')


OWN_BOARD = """\
targets = ["boards/board.toml"]
models = [{ path = "m.onnx" }]

[overrides."my-*".accuracy]
absolute = 1e-7
"""


def write_own_board(folder: Path) -> Path:
    profile = folder / "boards" / "board.toml"
    profile.parent.mkdir(parents=True)
    profile.write_text('extends = "linux-x64"\nid = "my-board"\n')
    return profile


def test_globs_match_the_id_of_a_profile_that_is_given_by_its_path(tmp_path: Path) -> None:
    write_own_board(tmp_path)
    (tmp_path / "bundler.toml").write_text(OWN_BOARD)
    (request,) = project_requests(find_project(tmp_path))
    assert request.overrides == ("accuracy.absolute=1e-07",)


def test_a_profile_on_the_command_line_is_relative_to_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_own_board(tmp_path)
    (tmp_path / "bundler.toml").write_text(OWN_BOARD)
    monkeypatch.chdir(tmp_path / "boards")
    (request,) = project_requests(find_project(Path.cwd()), targets=["board.toml"])
    assert resolve_target(request.target, request.overrides).accuracy.absolute == 1e-7


@pytest.mark.parametrize("glob", ["linux-x46", "boards/*"])
def test_a_glob_that_matches_no_target_is_reported_by_its_line(tmp_path: Path, glob: str) -> None:
    """A limit of accuracy that never counts would let a worse model pass."""
    write_own_board(tmp_path)
    (tmp_path / "bundler.toml").write_text(OWN_BOARD.replace("my-*", glob))
    with pytest.raises(UsageError) as caught:
        find_project(tmp_path)
    (reported,) = caught.value.details
    assert reported.startswith("bundler.toml:4: overrides.")
    assert glob in reported.partition(": matches no target")[0]


def test_one_table_in_place_of_an_array_of_tables_is_reported_with_its_head(tmp_path: Path) -> None:
    (tmp_path / "bundler.toml").write_text('targets = ["linux-x64"]\n[models]\npath = "a.onnx"\n')
    with pytest.raises(UsageError) as caught:
        find_project(tmp_path)
    (reported,) = caught.value.details
    assert reported.startswith("bundler.toml:2: models: got a table, expected an array of tables: [[models]]")


@pytest.mark.parametrize("key", ["samples", "calibration"])
def test_data_that_are_not_there_are_reported_by_the_key_of_the_file(tmp_path: Path, key: str) -> None:
    """An option of the command line would be refused beside a project file."""
    models = f'models = [{{ path = "m.onnx", {key} = "nowhere" }}]\n'
    (tmp_path / "bundler.toml").write_text(f'targets = ["linux-x64"]\n{models}')
    (request,) = project_requests(find_project(tmp_path))
    with pytest.raises(UsageError, match="there is no file or folder") as caught:
        source_environments(request)
    assert (caught.value.hint or "").startswith(f"`{key}` in bundler.toml takes a folder of .npz files")
