import json
import math
from dataclasses import replace
from pathlib import Path

import onnxruntime
import pytest

from bundler.environments.lockfiles import parse_lock, shipped_lock
from bundler.environments.registry import Environments
from bundler.model.attempts import Attempt, Frontier, RecordedChoice
from bundler.model.errors import EnvironmentMissingError, UsageError
from bundler.pipeline.requests import BuildRequest, PipelineRequest, combine_requests
from bundler.project.load import LoadedProject
from bundler.project.lock import LockFile, read_lock, write_lock
from bundler.project.pinning import needed_locks, pin_project
from bundler.project.schema import Project

HOST_LOCK = f"python-runtime-onnxruntime-{onnxruntime.__version__}"


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedProject:
    project = Project.model_validate({"models": ({"path": "m.onnx"},), "targets": ("linux-x64",)})
    return LoadedProject(path=tmp_path / "bundler.toml", project=project)


def request_for(target: str, *, bundle_format: str | None = None, overrides: tuple[str, ...] = ()) -> BuildRequest:
    return BuildRequest(model=Path("m.onnx"), target=target, format=bundle_format, overrides=overrides)


def pin(loaded: LoadedProject, tmp_path: Path, *requests: BuildRequest, locked: bool = False) -> tuple[str, ...]:
    return pin_project(loaded, requests, Environments(tmp_path / "cache"), locked=locked).changes


def test_everything_that_a_build_downloads_is_pinned(tmp_path: Path) -> None:
    environments = Environments(tmp_path)
    assert set(needed_locks([request_for("linux-x64")], environments)) == {
        "flit-core",
        "pip",
        "python-runtime-onnxruntime-1.31.1",
    }
    single = needed_locks([request_for("linux-x64", bundle_format="pex")], environments)
    assert "pex" in single
    request = request_for("linux-x64", overrides=("optimization.simplifier=onnxscript",))
    simplified = needed_locks([request], environments)
    assert "onnxscript" in simplified


def request_with(requires: tuple[str, ...]) -> BuildRequest:
    """Of two models, with a pipeline that requires packages."""
    parts = {"one": request_for("linux-x64"), "two": request_for("linux-x64")}
    pipeline = PipelineRequest(file=Path("p.py"), entry=":run", samples=Path(), requires=requires)
    return replace(combine_requests(parts, "pair"), pipeline=pipeline)


def test_packages_of_a_pipeline_are_pinned_and_others_are_others(loaded: LoadedProject, tmp_path: Path) -> None:
    request = request_with(("iniconfig>=2", "numpy"))
    (wanted, judged), pins = sorted(name_pipeline_locks(request)), HOST_LOCK
    assert judged.startswith(f"{wanted}-with-onnx-")
    pin(loaded, tmp_path, request)
    found = read_lock(loaded.lock_path)
    assert found is not None
    held, both = (parse_lock(name, found.environments[name]) for name in (wanted, judged))
    runtime = shipped_lock(pins)
    assert runtime is not None
    assert {pin.name for pin in held.pins} - {pin.name for pin in runtime.pins} == {"iniconfig"}
    assert set(runtime.pins) <= set(held.pins) <= set(both.pins)
    assert pin(loaded, tmp_path, request, locked=True) == ()
    with pytest.raises(UsageError) as caught:
        pin(loaded, tmp_path, request_with(("iniconfig>=2.1",)), locked=True)
    assert len([line for line in caught.value.details if line.endswith("not in the lock")]) == 2
    assert len([line for line in caught.value.details if line.endswith("no longer needed")]) == 2


def test_a_requirement_that_the_runtime_contradicts_is_refused(loaded: LoadedProject, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentMissingError) as caught:
        pin(loaded, tmp_path, request_with(("numpy<2",)))
    assert any("numpy<2" in line for line in caught.value.details)


def name_pipeline_locks(request: BuildRequest) -> list[str]:
    return [name for name in needed_locks([request], Environments(Path())) if name.startswith("pipeline-")]


def test_a_lock_is_made_once_and_then_stays_to_the_byte(loaded: LoadedProject, tmp_path: Path) -> None:
    assert pin(loaded, tmp_path, request_for("linux-x64")) == ("written for the first time",)
    first = loaded.lock_path.read_bytes()
    assert pin(loaded, tmp_path, request_for("linux-x64")) == ()
    assert loaded.lock_path.read_bytes() == first
    assert b"://" not in first


def test_locked_names_what_is_missing_and_changes_nothing(loaded: LoadedProject, tmp_path: Path) -> None:
    pin(loaded, tmp_path, request_for("linux-x64"))
    before = loaded.lock_path.read_bytes()
    with pytest.raises(UsageError) as caught:
        pin(loaded, tmp_path, request_for("linux-x64", bundle_format="pex"), locked=True)
    assert caught.value.details == ("pex: not in the lock",)
    assert loaded.lock_path.read_bytes() == before


def test_another_version_of_a_tool_beside_us_is_a_difference(loaded: LoadedProject, tmp_path: Path) -> None:
    pin(loaded, tmp_path, request_for("linux-x64"))
    data = json.loads(loaded.lock_path.read_text())
    data["tools"]["onnxruntime"] = "1.0.0"
    loaded.lock_path.write_text(json.dumps(data))
    with pytest.raises(UsageError) as caught:
        pin(loaded, tmp_path, request_for("linux-x64"), locked=True)
    assert caught.value.details[0].startswith("onnxruntime: locked 1.0.0, here ")


def test_pins_of_the_lock_count_before_those_that_ship(tmp_path: Path) -> None:
    text = "pip==1.0 \\\n    --hash=sha256:" + "0" * 64 + "\n"
    environments = Environments(tmp_path, {"pip": text})
    assert environments.lock("pip").versions() == {"pip": "1.0"}


def test_measured_decisions_survive_an_update(loaded: LoadedProject, tmp_path: Path) -> None:
    attempt = Attempt(method="none", title="as it is", state="chosen", figures={"cosine": None, "sqnr_db": 1.5})
    frontier = Frontier(
        variant="cpu", chosen="none", attempts=(attempt,), timing="measured", how="", held_out=8, calibration=0
    )
    decisions = {"m-linux-x64": {"cpu": RecordedChoice(question="0" * 64, answer=frontier)}}
    write_lock(loaded.lock_path, LockFile(decisions=decisions))
    pin(loaded, tmp_path, request_for("linux-x64"))
    found = read_lock(loaded.lock_path)
    assert found is not None
    assert found.decisions == decisions


def _lock_with(**fields: object) -> str:
    """A lock with one recorded choice, whose attempt has these fields too."""
    attempt = {"method": "none", "title": "", "state": "chosen", **fields}
    frontier = {"variant": "cpu", "chosen": "none", "timing": "measured", "how": "", "held_out": 8, "calibration": 0}
    choice = {"question": "0" * 64, "answer": {**frontier, "attempts": [attempt]}}
    return json.dumps({"schema": 1, "tools": {}, "environments": {}, "decisions": {"m-linux-x64": {"cpu": choice}}})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": 99}',
        '{"schema": 1, "tools": {}, "environments": {"pip": ["pip>=1"]}}',
        '{"schema": 1, "tools": [["numpy", "2"]], "environments": {}}',
        '{"schema": 1, "tools": {"numpy": 2}, "environments": {}}',
        '{"schema": 1, "tools": {}, "environments": {"pip": "pip==1"}}',
        '{"schema": 1, "tools": {}, "environments": {}, "decisions": {"m-linux-x64": 3}}',
        '{"schema": 1, "tools": {}, "environments": {}, "decisions": {"m-linux-x64": {"cpu": {"question": "x"}}}}',
        '{"schema": 1, "tools": {}, "environments": {}, "plugins": {}}',
        _lock_with(seconds=math.nan),
        _lock_with(ratio=math.inf),
        _lock_with(rounds="8"),
        _lock_with(unknown=1),
        "[" * 100_000,
    ],
)
def test_a_lock_that_cannot_be_used_says_so(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bundler.lock"
    path.write_text(text)
    with pytest.raises(UsageError, match="cannot be used"):
        read_lock(path)
