"""The table of simplifiers: each has a lock, a module, and nothing of the others."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from bundler.environments.lockfiles import shipped_lock
from bundler.model.errors import StageError
from bundler.onnxkit.signatures import check_interface
from bundler.stages.simplify.spec import SPEC, TOOLS, Options
from tests.support import models
from tests.support.stage_calls import call_stage


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_has_a_lock_that_holds_it_and_none_of_the_others(tool: str) -> None:
    lock = shipped_lock(tool)
    assert lock is not None
    assert set(lock.versions()) & set(TOOLS) == {tool}
    assert {"onnx", "numpy"} <= set(lock.versions())
    assert tool in SPEC.packages


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_has_a_module_of_its_name(tool: str) -> None:
    assert importlib.util.find_spec(f"bundler.stages.simplify.tools.{tool}") is not None


def test_the_default_is_the_one_that_measured_best() -> None:
    assert Options().tool == "onnxscript"


def test_an_unknown_tool_is_rejected(tmp_path: Path) -> None:
    model = models.save(models.cnn(), tmp_path)
    with pytest.raises(StageError, match=r"no simplifier is named '\.\./\.\./etc'") as caught:
        call_stage("simplify", tmp_path / "out", {"model": model}, tool="../../etc")
    assert "onnxscript" in (caught.value.hint or "")


def test_the_facts_name_the_tool(tmp_path: Path) -> None:
    model = models.save(models.redundant(), tmp_path)
    assert call_stage("simplify", tmp_path / "out", {"model": model}).facts["tool"] == "onnxscript"


@pytest.mark.parametrize("error", [KeyError("x"), RuntimeError("no pass"), AttributeError("name")])
def test_whatever_a_library_raises_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("bundler.stages.simplify.tools.onnxscript.simplify", fail)
    with pytest.raises(StageError, match="the simplifier onnxscript cannot process this model") as caught:
        call_stage("simplify", tmp_path / "out", {"model": models.save(models.cnn(), tmp_path)})
    assert type(error).__name__ in caught.value.details[0]


def test_a_result_whose_outputs_hold_something_else_is_refused() -> None:
    """A sequence of maps that comes back as a sequence of nothing: ONNX Runtime would not open it."""
    before, after = models.zipmap(), models.zipmap()
    after.graph.output[1].type.sequence_type.elem_type.tensor_type.elem_type = 0
    with pytest.raises(StageError, match="inputs or outputs changed"):
        check_interface(before, after)
