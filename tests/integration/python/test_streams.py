"""Streams of a Python bundle: calls of a recurrent model that go on from each other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import onnxruntime
import pytest

from bundler.model.errors import UsageError
from bundler.model.state import StateLink
from tests.integration.python.packages import Package, imported, write_package
from tests.support import models
from tests.support.bundles import combine_requests, make_request
from tests.support.recurrent_models import UNITS, make_frames, make_gru

STEPS = 100


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    folder = tmp_path_factory.mktemp("recurrent")
    link = StateLink(input="h0", output="hn", initial="constant", value=0.25)
    return write_package(make_request(make_gru(), folder, state=(link,)), folder)


@pytest.fixture
def module(package: Package) -> Iterator[ModuleType]:
    with imported(package) as module:
        yield module


def run_by_hand(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Scores and state of each step, by the runtime alone."""
    session = onnxruntime.InferenceSession(make_gru().SerializeToString())
    state, steps = np.full((1, UNITS), 0.25, np.float32), []
    for frame in make_frames(count):
        scores, state = session.run(["scores", "hn"], {"x": frame, "h0": state})
        steps.append((scores, state))
    return steps


def test_a_stream_equals_the_loop_by_hand(module: ModuleType) -> None:
    stream = module.Model().stream()
    found = [(stream.run(x=frame), stream.state["h0"]) for frame in make_frames(STEPS)]
    for (outputs, state), (scores, after) in zip(found, run_by_hand(STEPS), strict=True):
        assert outputs._fields == ("scores",)
        np.testing.assert_allclose(outputs.scores, scores, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(state, after, rtol=1e-5, atol=1e-5)


def test_the_readme_shows_a_stream(package: Package) -> None:
    readme = (package.root / "README.md").read_text("utf-8")
    assert "stream = model.stream()" in readme
    assert "step = stream.run(x=…)  # without h0" in readme


def test_outputs_that_are_kept_are_not_overwritten(module: ModuleType) -> None:
    stream = module.Model().stream()
    kept = [stream.run(x=frame).scores for frame in make_frames(9)]
    stream.reset()
    for frame, before in zip(make_frames(9), kept, strict=True):
        np.testing.assert_array_equal(stream.run(x=frame).scores, before)


def test_streams_of_one_model_do_not_meet(module: ModuleType) -> None:
    model, frames = module.Model(), make_frames(6)
    one, other = model.stream(), model.stream()
    alone = [one.run(x=frame).scores for frame in frames]
    one.reset()
    for frame, before in zip(frames, alone, strict=True):
        other.run(x=-frame)
        np.testing.assert_array_equal(one.run(x=frame).scores, before)


def test_a_state_is_kept_and_restored(module: ModuleType) -> None:
    model, frames = module.Model(), make_frames(4)
    stream, later = model.stream(), model.stream()
    stream.run(x=frames[0])
    later.state = stream.state
    np.testing.assert_array_equal(later.run(x=frames[1]).scores, stream.run(x=frames[1]).scores)


@pytest.mark.parametrize(
    "state", [{"h0": np.zeros((2, UNITS), np.float32)}, {"h0": np.zeros((1, UNITS))}, {"other": np.zeros(1)}, {}]
)
def test_a_state_that_does_not_fit_is_refused(module: ModuleType, state: dict[str, np.ndarray]) -> None:
    stream = module.Model().stream()
    before = stream.state["h0"]
    with pytest.raises(module.InputError, match=r"h0|other"):
        stream.state = state
    np.testing.assert_array_equal(stream.state["h0"], before)


def test_an_input_that_does_not_fit_leaves_the_state(module: ModuleType) -> None:
    stream = module.Model().stream()
    before = stream.state["h0"]
    with pytest.raises(module.InputError, match="float64"):
        stream.run(x=make_frames(1)[0].astype(np.float64))
    np.testing.assert_array_equal(stream.state["h0"], before)


def test_a_stream_in_use_by_another_thread_says_so(module: ModuleType) -> None:
    stream, refused = module.Model().stream(), []
    frames = make_frames(1)
    with stream._state._busy:  # as within a long call

        def use() -> None:
            try:
                stream.run(x=frames[0])
            except module.InputError as error:
                refused.append(str(error))

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
    assert len(refused) == 1
    assert "in use by another thread" in refused[0]
    assert "a stream of its own" in refused[0]
    stream.run(x=frames[0])


def test_a_closed_stream_and_a_closed_model_say_so(module: ModuleType) -> None:
    model = module.Model()
    frame = make_frames(1)[0]
    with model.stream() as stream:
        stream.run(x=frame)
    with pytest.raises(module.ClosedError, match="the stream is closed"):
        stream.run(x=frame)
    other = model.stream()
    model.close()
    with pytest.raises(module.ClosedError, match="this model is closed"):
        other.run(x=frame)
    with pytest.raises(module.ClosedError):
        model.stream()


def test_the_self_test_follows_the_models_own_state(module: ModuleType) -> None:
    """With another model behind it, the error of a stream adds up and is found."""
    model = module.Model()
    result = model.self_test()
    assert result.passed
    assert result.samples > 8
    seen: list[np.ndarray] = []
    run = model._run
    model._run = lambda values: (seen.append(values[1]), [run(values)[0], run(values)[1] * np.float32(0.5)])[1]
    with pytest.raises(module.SelfTestError):
        model.self_test()
    np.testing.assert_array_equal(seen[0], np.full((1, UNITS), 0.25, np.float32))
    assert len({value.tobytes() for value in seen}) == len(seen)


def test_a_bundle_without_state_carries_no_streams(tmp_path: Path) -> None:
    package = write_package(make_request(models.cnn(), tmp_path), tmp_path)
    assert not (package.root / package.name / "_loader" / "streams.py").exists()
    assert "tream" not in (package.root / package.name / "__init__.py").read_text("utf-8")


def test_a_component_of_several_has_a_stream_of_its_own_class(tmp_path: Path) -> None:
    link = StateLink(input="h0", output="hn")
    parts = [make_request(make_gru(), tmp_path / name, state=(link,)) for name in ("one", "other")]
    package = write_package(combine_requests({"step": parts[0], "other": parts[1]}), tmp_path)
    with imported(package) as module, module.Bundle.open() as bundle:
        stream = bundle.step.stream()
        assert isinstance(stream, module.StepStream)
        assert stream.run(x=make_frames(1)[0])._fields == ("scores",)
    with pytest.raises(UsageError, match="would have the class of step_stream"):
        write_package(combine_requests({"step": parts[0], "step_stream": parts[1]}), tmp_path / "clash")


def test_streams_of_several_components_go_on_side_by_side(tmp_path: Path) -> None:
    links = [StateLink(input="h0", output="hn", initial="constant", value=value) for value in (0.25, 0.0)]
    parts = [make_request(make_gru(), tmp_path / link.initial / str(link.value), state=(link,)) for link in links]
    package = write_package(combine_requests({"hear": parts[0], "speak": parts[1]}), tmp_path)
    with imported(package) as module:
        with module.Bundle.open() as bundle:
            hear, speak = bundle.hear.stream(), bundle.speak.stream()
            assert type(hear) is not type(speak)
            for frame, (scores, after) in zip(make_frames(9), run_by_hand(9), strict=True):
                other = speak.run(x=frame).scores
                np.testing.assert_allclose(hear.run(x=frame).scores, scores, rtol=1e-5, atol=1e-5)
                np.testing.assert_allclose(hear.state["h0"], after, rtol=1e-5, atol=1e-5)
                assert not np.array_equal(other, scores)
            speak.reset()
            np.testing.assert_array_equal(speak.state["h0"], np.zeros((1, UNITS), np.float32))
            assert hear.state["h0"].any()
        with pytest.raises(module.ClosedError):
            hear.run(x=make_frames(1)[0])
