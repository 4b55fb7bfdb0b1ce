from pathlib import Path

import pytest

from bundler.model.errors import UsageError
from bundler.profiles.resolve import resolve_target
from bundler.project.load import find_project, overrides_for
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


def test_every_mistake_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "bundler.toml").write_text('modles = 3\n[[models]]\nnmae = "x"\n')
    with pytest.raises(UsageError) as caught:
        find_project(tmp_path)
    text = "\n".join(caught.value.details)
    assert "modles" in text
    assert "models.0.path" in text
    assert "models.0.nmae" in text


def test_text_that_is_no_toml_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "bundler.toml").write_text("a = [1,\n")
    with pytest.raises(UsageError, match="not valid TOML"):
        find_project(tmp_path)


def test_without_a_project_file_the_hint_says_both_ways(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        find_project(tmp_path)
    assert "bundler init" in (caught.value.hint or "")
