"""Streams of a Python bundle: calls of a recurrent model that go on from each other."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
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
from tests.support.decoder_models import DEPTH, HEADS, make_decoder, make_tokens
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
    assert "a separate stream" in refused[0]
    stream.run(x=frames[0])


def test_closing_waits_for_the_step_of_another_thread(module: ModuleType) -> None:
    stream = module.Model().stream()
    with stream._state._busy:  # as within a long call
        thread = threading.Thread(target=stream.close)
        thread.start()
        thread.join(timeout=0.2)
        assert thread.is_alive()
        assert stream._state._bindings
    thread.join()
    with pytest.raises(module.ClosedError, match="the stream is closed"):
        stream.run(x=make_frames(1)[0])


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


def write_start(folder: Path) -> tuple[np.ndarray, StateLink]:
    """An initial state that differs from element to element, and the link that begins with it."""
    start = np.linspace(-1, 1, UNITS, dtype=np.float32).reshape(1, UNITS)
    np.save(folder / "start.npy", start)
    return start, StateLink(input="h0", output="hn", initial="file", file=str(folder / "start.npy"))


def test_a_stream_begins_with_the_array_of_a_file(tmp_path: Path) -> None:
    start, link = write_start(tmp_path)
    package = write_package(make_request(make_gru(), tmp_path, state=(link,)), tmp_path)
    session = onnxruntime.InferenceSession(make_gru().SerializeToString())
    frame = make_frames(1)[0]
    with imported(package) as module:
        model = module.Model()
        stream = model.stream()
        np.testing.assert_array_equal(stream.state["h0"], start)
        expected = session.run(["scores"], {"x": frame, "h0": start})[0]
        np.testing.assert_allclose(stream.run(x=frame).scores, expected, rtol=1e-5, atol=1e-5)
        stream.reset()
        np.testing.assert_array_equal(stream.state["h0"], start)
        assert model.self_test().passed


def test_an_altered_initial_value_is_refused(tmp_path: Path) -> None:
    _, link = write_start(tmp_path)
    package = write_package(make_request(make_gru(), tmp_path, state=(link,)), tmp_path)
    payload = package.root / package.name / "payload"
    (shipped,) = json.loads((payload / "runtime.json").read_text("utf-8"))["components"][0]["state"]
    with imported(package) as module:
        model = module.Model()
        content = bytearray((payload / shipped["file"]).read_bytes())
        content[0] ^= 1
        (payload / shipped["file"]).write_bytes(content)
        with pytest.raises(module.IntegrityError, match="does not match its checksum"):
            model.stream()
        (payload / shipped["file"]).unlink()
        with pytest.raises(module.IntegrityError, match="cannot read"):
            model.stream()


CACHE = tuple(StateLink(input=f"past_{kind}", output=f"present_{kind}", grows=2) for kind in "kv")
TOKENS = (5, 1, 1, 3, 1, 1)


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Package:
    folder = tmp_path_factory.mktemp("decoder")
    return write_package(make_request(make_decoder(), folder, state=CACHE), folder)


def run_whole(tokens: np.ndarray) -> list[np.ndarray]:
    """Logits, keys and values of all tokens at once, by the runtime alone."""
    none = np.zeros((1, HEADS, 0, DEPTH), np.float32)
    session = onnxruntime.InferenceSession(make_decoder().SerializeToString())
    return list(session.run(None, {"tokens": tokens, "past_k": none, "past_v": none}))


def test_keys_and_values_grow_with_each_step(decoder: Package) -> None:
    tokens = make_tokens(sum(TOKENS))
    logits, keys, values = run_whole(tokens)
    with imported(decoder) as module:
        model = module.Model()
        stream, other = model.stream(), model.stream()
        assert stream.state["past_k"].shape == (1, HEADS, 0, DEPTH)
        for _ in "ab":
            found, place = [], 0
            for count in TOKENS:
                outputs = stream.run(tokens=tokens[:, place : place + count])
                assert outputs._fields == ("logits",)
                found.append(outputs.logits)
                place += count
                assert stream.state["past_k"].shape[2] == place
                other.run(tokens=tokens[:, :1])
            np.testing.assert_allclose(np.concatenate(found, axis=1), logits, atol=1e-4)
            np.testing.assert_allclose(stream.state["past_k"], keys, atol=1e-5)
            np.testing.assert_allclose(stream.state["past_v"], values, atol=1e-5)
            stream.reset()
        assert other.state["past_v"].shape[2] == 2 * len(TOKENS)
        assert model.self_test().passed


def test_the_readme_says_what_grows(decoder: Package, package: Package) -> None:
    text = "Each step makes the state longer (`past_k`, `past_v`), until `reset()`."
    assert text in (decoder.root / "README.md").read_text("utf-8")
    assert "longer" not in (package.root / "README.md").read_text("utf-8")


def test_what_grew_can_be_kept_and_gone_on_from(decoder: Package) -> None:
    tokens = make_tokens(9)
    with imported(decoder) as module:
        stream = module.Model().stream()
        stream.run(tokens=tokens[:, :5])
        kept = stream.state
        first = stream.run(tokens=tokens[:, 5:]).logits
        with pytest.raises(Exception, match="out of data bounds"):
            stream.run(tokens=np.full((1, 1), -1000))
        assert stream.state["past_k"].shape[2] == 9
        stream.state = kept
        assert kept["past_k"].shape[2] == 5
        np.testing.assert_array_equal(stream.run(tokens=tokens[:, 5:]).logits, first)
        with pytest.raises(module.InputError, match="dimension"):
            stream.state = {"past_k": np.zeros((1, HEADS, DEPTH), np.float32), "past_v": kept["past_v"]}


def test_what_grows_may_begin_with_a_file(tmp_path: Path) -> None:
    tokens = make_tokens(9)
    logits, keys, values = run_whole(tokens)
    np.save(tmp_path / "k.npy", keys[:, :, :6])
    np.save(tmp_path / "v.npy", values[:, :, :6])
    links = tuple(replace(link, initial="file", file=str(tmp_path / f"{link.input[-1]}.npy")) for link in CACHE)
    package = write_package(make_request(make_decoder(), tmp_path, state=links), tmp_path)
    with imported(package) as module:
        model = module.Model()
        found = model.stream().run(tokens=tokens[:, 6:]).logits
        np.testing.assert_allclose(found, logits[:, 6:], atol=1e-4)
        assert model.self_test().passed


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
