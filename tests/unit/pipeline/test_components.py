"""Bundles of several components: their request, their names, and what each of them is given."""

from __future__ import annotations

import keyword
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.cli.requests import find_components, make_requests
from bundler.model.component_names import check_component_names
from bundler.model.errors import UsageError
from bundler.pipeline.requests import BuildRequest, combine_requests, list_parts, repeat_command


def request(model: str = "det.onnx", **changes: object) -> BuildRequest:
    return replace(BuildRequest(model=Path(model), target="linux-x64"), **changes)


def test_one_model_is_the_component_model() -> None:
    assert list_parts(request()) == {"model": request()}


def test_what_belongs_to_the_bundle_is_the_same_in_all_components() -> None:
    parts = {"detect": request(seed=3), "read": request("rec.onnx")}
    combined = replace(combine_requests(parts, "ocr"), locked=True, version="2.0")
    assert [(part.locked, part.version) for part in list_parts(combined).values()] == [(True, "2.0")] * 2
    assert [part.seed for part in list_parts(combined).values()] == [3, 0]


@pytest.mark.parametrize(
    "changes", [{"target": "web-wasm"}, {"format": "wheel"}, {"python": ("3.12",)}, {"output": Path("x")}]
)
def test_a_component_cannot_have_a_bundle_of_its_own_kind(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="must be the same for all components of the bundle; component 'read' differs"):
        combine_requests({"detect": request(), "read": request("rec.onnx", **changes)}, "ocr")


@pytest.mark.parametrize("together", [("detect",), ("detect", "write"), ("detect", "detect")])
def test_together_names_two_or_more_of_the_components(together: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="together must name two or more components"):
        combine_requests({"detect": request(), "read": request("rec.onnx")}, "ocr", together)


NOT_NAMES = ("", "Detect", "1st", "a-b", "a b", "class", "fun", "func", "let", "del", "détect", "a" * 33, "_a", "a_")


@pytest.mark.parametrize("name", [*NOT_NAMES, "run", "close", "report", "then", "model", "self_test", "x\n", "a__b"])
def test_names_that_some_language_or_loader_has_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name of a component"):
        check_component_names([name])


@given(st.text(max_size=40))
def test_a_name_that_is_taken_is_an_identifier(name: str) -> None:
    try:
        check_component_names([name])
    except UsageError:
        return
    assert name.isascii()
    assert name.isidentifier()
    assert name == name.lower()
    assert not keyword.iskeyword(name)
    assert not keyword.issoftkeyword(name)


def test_models_with_names_are_one_bundle_for_each_target() -> None:
    models = [Path("detect=det.onnx"), Path("read=rec.onnx")]
    one, two = make_requests(models, ["linux-x64", "web-wasm"], {"name": "ocr"}, ())
    assert (one.name, one.target, two.target) == ("ocr", "linux-x64", "web-wasm")
    assert {name: part.model for name, part in one.components.items()} == {
        "detect": Path("det.onnx"),
        "read": Path("rec.onnx"),
    }
    command = " ".join(repeat_command(one))
    assert command == "bundler build detect=det.onnx read=rec.onnx --target linux-x64 --name ocr"


def test_one_model_with_a_name_is_called_as_its_file() -> None:
    (found,) = make_requests([Path("detect=det.onnx")], ["linux-x64"], {}, ())
    assert (found.name, list(found.components)) == ("det", ["detect"])


def test_a_file_whose_name_has_the_form_of_a_component_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a=b.onnx").touch()
    assert find_components([tmp_path / "a=b.onnx"]) == {}
    assert find_components([Path("lr=0.1/model.onnx")]) == {"lr": Path("0.1/model.onnx")}


@pytest.mark.parametrize(
    ("models", "text"),
    [
        (["detect=a.onnx", "b.onnx"], "b.onnx has none"),
        (["detect=", "read=b.onnx"], "detect= has no model"),
        (["detect=a.onnx", "detect=b.onnx"], "two models have the name detect"),
        (["detect=a.onnx", "read=b.onnx"], "requires a name"),
    ],
)
def test_names_that_leave_something_open_are_refused(models: list[str], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        make_requests([Path(model) for model in models], ["linux-x64"], {}, ())


def test_each_component_has_its_own_part_of_the_samples(tmp_path: Path) -> None:
    (tmp_path / "detect").mkdir()
    (tmp_path / "read.npz").touch()
    models = [Path("detect=det.onnx"), Path("read=rec.onnx")]
    (found,) = make_requests(models, ["linux-x64"], {"name": "ocr", "samples": str(tmp_path)}, ())
    assert [part.samples for part in found.components.values()] == [
        str(tmp_path / "detect"),
        str(tmp_path / "read.npz"),
    ]
    (tmp_path / "read.npz").unlink()
    with pytest.raises(UsageError, match="has no data for component read"):
        make_requests(models, ["linux-x64"], {"name": "ocr", "samples": str(tmp_path)}, ())


def test_a_name_for_several_models_is_answered_with_how_to_make_one_bundle() -> None:
    with pytest.raises(UsageError, match="applies to one model only") as caught:
        make_requests([Path("det.onnx"), Path("rec.onnx")], ["linux-x64"], {"name": "ocr"}, ())
    assert "NAME=det.onnx" in (caught.value.hint or "")


def test_the_command_that_is_repeated_names_the_folder_with_the_data_of_all(tmp_path: Path) -> None:
    (tmp_path / "detect").mkdir()
    (tmp_path / "step.npz").touch()
    models = [Path("detect=det.onnx"), Path("step=gru.onnx")]
    (found,) = make_requests(models, ["linux-x64"], {"name": "ocr", "samples": str(tmp_path)}, ())
    command = repeat_command(found)
    assert command[command.index("--samples") + 1] == str(tmp_path)
