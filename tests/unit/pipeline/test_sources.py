"""What `hf:…` means, and what is said where it means nothing."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.environments.lockfiles import shipped_lock
from bundler.environments.registry import Environment
from bundler.model.errors import BundlerError, EnvironmentMissingError, ModelError, UsageError
from bundler.model.events import Reporter, ignore
from bundler.pipeline import sources
from bundler.pipeline.given import source_environments
from bundler.pipeline.requests import BuildRequest
from bundler.pipeline.sources import HubReference, export_model, export_step, is_reference, parse_reference
from bundler.pipeline.workspace import Workspace, open_workspace
from bundler.stages.registry import find_stage


@pytest.mark.parametrize(
    ("text", "expected"), [("hf:x", True), ("./hf:x", False), ("model.onnx", False), ("HF:x", False)]
)
def test_only_the_prefix_makes_a_reference(text: str, expected: bool) -> None:  # noqa: FBT001 - a table
    assert is_reference(text) == expected


@pytest.mark.parametrize(
    ("text", "model", "revision", "task", "opset"),
    [
        ("hf:bert", "bert", "", "auto", 0),
        ("hf:org/name", "org/name", "", "auto", 0),
        ("hf:org/name@v1.0", "org/name", "v1.0", "auto", 0),
        ("hf:org/name@refs/pr/3?task=fill-mask", "org/name", "refs/pr/3", "fill-mask", 0),
        ("hf:org/name?task=fill-mask&opset=17", "org/name", "", "fill-mask", 17),
        ("hf:org/name?opset=17", "org/name", "", "auto", 17),
    ],
)
def test_names_of_models(text: str, model: str, revision: str, task: str, opset: int) -> None:
    found = parse_reference(text)
    assert found == HubReference(folder=None, model_id=model, revision=revision, task=task, opset=opset)
    assert found.name == model.rpartition("/")[2]


def test_a_folder_that_is_there_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("org/name", "what?", "a@b"):
        (tmp_path / name).mkdir(parents=True)
    assert parse_reference("hf:org/name").folder == Path("org/name")
    assert parse_reference("hf:a@b").folder == Path("a@b")
    assert parse_reference("hf:what?").folder == Path("what?")
    assert parse_reference("hf:org/name?task=fill-mask").task == "fill-mask"
    assert parse_reference("hf:.").name == tmp_path.name


@pytest.mark.parametrize("place", ["./nothing", "../nothing", "/nothing", "~/nothing", "a\\b"])
def test_what_is_written_as_a_folder_is_one_and_its_absence_is_said(place: str, tmp_path: Path) -> None:
    reference = parse_reference(f"hf:{place}")
    assert reference.folder is not None
    with open_workspace(str(tmp_path / "cache")) as workspace, pytest.raises(ModelError, match="there is no folder"):
        export_model(reference, workspace, Reporter(ignore, "x"))


@pytest.mark.parametrize(
    "text",
    [
        "hf:",
        "hf:?task=fill-mask",
        "hf:a/b/c",
        "hf:-a",
        "hf:a b",
        "hf:a@",
        "hf:a@../b",
        "hf:a..b",
        "hf:a@-x",
        "hf:a?nothing=1",
        "hf:a?task=",
        "hf:a?task=Fill Mask",
        "hf:a?task=x&task=y",
        "hf:a?opset=-1",
        "hf:a?opset=1.5",
        "hf:a?opset=99999",
        "hf:a?x",
        "hf:a\x1b[2J",
        "hf:a\nb",
        "hf:http://x/y",
    ],
    ids=ascii,
)
def test_what_means_nothing_is_said_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_reference(text)
    assert caught.value.message.isprintable()
    assert "hf:FOLDER" in (caught.value.hint or "")


@given(st.text(max_size=40))
def test_any_text_is_understood_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        found = parse_reference(f"hf:{text}")
        assert found.folder is not None or found.model_id


def test_the_export_is_a_step_of_its_own_environment() -> None:
    reference = parse_reference("hf:org/name@main?task=fill-mask&opset=17")
    step = export_step(reference, "0123")
    assert find_stage(step.stage).produces == "model"
    assert step.environment == "optimum"
    expected = {"model_id": "org/name", "revision": "0123", "task": "fill-mask", "opset": 17}
    assert step.options == expected


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """One whose environment that fetches models is this interpreter, which has no hub library; it has no other."""
    with open_workspace(str(tmp_path / "cache")) as opened:
        here = Environment(name="hub", python=Path(sys.executable), versions={}, digest="", python_version="3")
        monkeypatch.setattr(opened.environments, "resolve", lambda name, *_: {"hub": here}[name])
        yield opened


@pytest.mark.parametrize(
    ("kind", "error", "message", "hint"),
    [
        ("gated", ModelError, "only after its terms are accepted", "HF_TOKEN"),
        ("missing", ModelError, "there is no model org/name", "HF_TOKEN"),
        ("revision", ModelError, "has no revision v1", "a branch, a tag or a commit"),
        ("unreachable", EnvironmentMissingError, "could not be fetched", "hf:./FOLDER"),
    ],
)
def test_why_a_model_cannot_be_fetched_is_said(kind: str, error: type[BundlerError], message: str, hint: str) -> None:
    reference = parse_reference("hf:org/name@v1")
    with pytest.raises(error, match=message) as caught:
        raise sources._fetch_error(reference, sources._Answer(error=kind, text="\x1b[2J"))
    assert hint in (caught.value.hint or "")
    assert all(line.isprintable() for line in caught.value.details)


def test_a_program_that_fetches_nothing_and_says_nothing_is_no_crash(workspace: Workspace) -> None:
    with pytest.raises(EnvironmentMissingError, match="the model org/name could not be fetched") as caught:
        export_model(parse_reference("hf:org/name"), workspace, Reporter(ignore, "x"))
    assert caught.value.details == ("the program that fetches models did not respond",)


def test_what_fetches_a_model_is_small_and_has_the_exporters_versions() -> None:
    names = source_environments(_request("org/name"))
    small, large = ({(pin.name, pin.version) for pin in shipped_lock(name).pins} for name in names)
    assert small < large
    assert len(small) < 20
    assert source_environments(_request("./folder")) == ("optimum",)


def _request(place: str) -> BuildRequest:
    return BuildRequest(model=Path(f"hf:{place}"), target="linux-x64")


@pytest.mark.parametrize("answer", ["[]", "3", '{"folder": 3}', '{"moon": "x"}', "no JSON", ""])
def test_an_answer_of_another_shape_counts_as_none(answer: str) -> None:
    found = sources._ask([sys.executable, "-c", f"print({answer!r})"])
    assert (found.folder, found.error) == ("", "unreachable")
