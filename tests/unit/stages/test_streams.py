"""Golden sets that are the steps of one stream: recorded from the original model, compared as a stream."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import numpy_helper

from bundler.model.codec import encode
from bundler.model.errors import UsageError
from bundler.model.state import StateLink
from bundler.onnxkit.golden import read_golden
from tests.support import models
from tests.support.decoder_models import DEPTH, HEADS, make_decoder, make_tokens
from tests.support.recurrent_models import UNITS, make_frames, make_gru, make_voice
from tests.support.stage_calls import call_stage, compare, record

STATE = encode((StateLink(input="h0", output="hn", initial="constant", value=0.5),))
FROM_FILE = encode((StateLink(input="h0", output="hn", initial="file", file="initial"),))
STEPS = 100


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.save(make_gru(), tmp_path / "model")


@pytest.fixture
def golden(model: Path, tmp_path: Path) -> Path:
    np.savez(tmp_path / "frames.npz", x=make_frames(STEPS))
    return record(model, tmp_path / "golden", tmp_path / "frames.npz", state=STATE, max_samples=STEPS)


def test_a_stream_begins_with_the_array_of_a_file(model: Path, tmp_path: Path) -> None:
    start = np.linspace(-1, 1, UNITS, dtype=np.float32).reshape(1, UNITS)
    for name, array in (("one", start), ("other", np.asfortranarray(start.astype(">f4")))):
        np.save(tmp_path / f"{name}.npy", array)
        golden = record(model, tmp_path / name, initial=tmp_path / f"{name}.npy", state=FROM_FILE, count=3)
        first = read_golden(golden).sample(0)
        np.testing.assert_array_equal(first.inputs["h0"], start)
        session = onnxruntime.InferenceSession(model)
        expected = session.run(["hn"], {"x": first.inputs["x"], "h0": start})[0]
        np.testing.assert_allclose(read_golden(golden).sample(1).inputs["h0"], expected, atol=1e-5)


class Trap:
    """Unpickled, it leaves a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (self.path,)


def write_bad(path: Path, case: str) -> None:
    good = np.zeros((1, UNITS), np.float32)
    spoiled = good.copy()
    spoiled[0, 3] = np.nan
    arrays = {"shape": np.zeros((2, UNITS), np.float32), "type": good.astype(np.float64), "nan": spoiled}
    arrays["text"] = np.full((1, UNITS), "0")
    if case in arrays:
        np.save(path, arrays[case])
    elif case == "objects":
        np.save(path, np.array([Trap(path.parent / "trapped")], object), allow_pickle=True)
    elif case == "pickle":
        path.write_bytes(pickle.dumps(Trap(path.parent / "trapped")))
    elif case == "truncated":
        np.save(path, good)
        path.write_bytes(path.read_bytes()[:-4])
    elif case == "nothing":
        with path.open("wb") as stream:
            header = {"descr": "<U0", "fortran_order": False, "shape": (1 << 40,)}
            np.lib.format.write_array_header_1_0(stream, header)
    else:
        assert case == "huge"
        np.save(path, good)
        data = path.read_bytes()
        path.write_bytes(data.replace(b"(1, 64)", b"(1, 64000000000)", 1)[: len(data)])


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("shape", "expected float32[1, 64], got float32[2, 64]"),
        ("type", "expected float32[1, 64], got float64[1, 64]"),
        ("text", "expected float32[1, 64], got str[1, 64]"),
        ("nan", "it holds NaN or infinity"),
        ("objects", "it holds Python objects"),
        ("pickle", "magic string"),
        ("truncated", "the size that its header declares"),
        ("huge", "the size that its header declares"),
        ("nothing", "it has elements of no size"),
    ],
)
def test_a_file_that_is_no_initial_value_is_refused(model: Path, tmp_path: Path, case: str, why: str) -> None:
    write_bad(tmp_path / "start.npy", case)
    with pytest.raises(UsageError, match="the initial value of state 'h0' cannot be used") as caught:
        record(model, tmp_path / "golden", initial=tmp_path / "start.npy", state=FROM_FILE, count=3)
    assert why in " ".join(caught.value.details)
    assert "numpy.save" in (caught.value.hint or "")
    assert not (tmp_path / "trapped").exists()


CACHE = tuple(StateLink(input=f"past_{kind}", output=f"present_{kind}", grows=2) for kind in "kv")


def write_prompt(folder: Path, counts: list[int]) -> np.ndarray:
    """Steps of so many tokens each; all tokens."""
    tokens = make_tokens(sum(counts))
    folder.mkdir()
    for step, part in enumerate(np.split(tokens, np.cumsum(counts)[:-1], axis=1)):
        np.savez(folder / f"{step:03}.npz", tokens=part)
    return tokens


def test_keys_and_values_grow_with_each_step(tmp_path: Path) -> None:
    """Steps of any length give what the model gives for all tokens at once."""
    decoder = models.save(make_decoder(), tmp_path / "decoder")
    tokens = write_prompt(tmp_path / "steps", [5, 1, 1, 3, 1])
    golden = record(decoder, tmp_path / "golden", tmp_path / "steps", state=encode(CACHE))
    none = np.zeros((1, HEADS, 0, DEPTH), np.float32)
    whole = onnxruntime.InferenceSession(decoder).run(None, {"tokens": tokens, "past_k": none, "past_v": none})
    samples = list(read_golden(golden))
    assert [sample.inputs["past_k"].shape[2] for sample in samples] == [0, 5, 6, 7, 10]
    joined = np.concatenate([sample.outputs["logits"] for sample in samples], axis=1)
    np.testing.assert_allclose(joined, whole[0], atol=1e-4)
    np.testing.assert_allclose(samples[-1].outputs["present_v"], whole[2], atol=1e-5)
    assert compare(decoder, golden, tmp_path / "compare").equal


def test_a_mask_grows_with_the_state(tmp_path: Path) -> None:
    decoder = models.save(make_decoder(masked=True), tmp_path / "decoder")
    (tmp_path / "steps").mkdir()
    for step in range(9):
        mask = np.ones((1, step + 1), np.int64)
        mask[:, 1:2] = 0
        np.savez(tmp_path / "steps" / f"{step}.npz", tokens=make_tokens(9)[:, step : step + 1], mask=mask)
    golden = record(decoder, tmp_path / "golden", tmp_path / "steps", state=encode(CACHE))
    assert len(read_golden(golden)) == 9
    assert compare(decoder, golden, tmp_path / "compare").equal


@pytest.mark.parametrize(("size", "warned"), [(1 << 20, True), (1 << 10, False)])
def test_steps_that_make_the_bundle_large_are_reported(tmp_path: Path, size: int, *, warned: bool) -> None:
    text = (
        f'<ir_version: 8, opset_import: ["" : 17]> net (float[1, 1] x, float[1, {size}] s)'
        f" => (float[1, 1] y, float[1, {size}] t) {{ y = Relu (x) t = Add (s, x) }}"
    )
    model = models.save(onnx.parser.parse_model(text), tmp_path / "model")
    state = encode((StateLink(input="s", output="t"),))
    np.savez(tmp_path / "steps.npz", x=np.ones((9, 1, 1), np.float32))
    inputs = {"model": model, "samples": tmp_path / "steps.npz"}
    found = call_stage("record_golden", tmp_path / "golden", inputs, state=state)
    notes = [note.text for note in found.notes if "MB of inputs and states" in note.text]
    assert [note.split(",")[0] for note in notes] == (["9 steps have 38 MB of inputs and states"] if warned else [])


def test_what_grows_may_begin_with_a_file(tmp_path: Path) -> None:
    decoder = models.save(make_decoder(), tmp_path / "decoder")
    np.save(tmp_path / "start.npy", np.ones((1, HEADS, 3, DEPTH), np.float32))
    links = tuple(replace(link, initial="file", file="initial") for link in CACHE)
    golden = record(decoder, tmp_path / "golden", initial=tmp_path / "start.npy", state=encode(links), count=9)
    lengths = [sample.inputs["past_k"].shape[2] for sample in read_golden(golden)]
    assert lengths[:3] == [3, 4, 5]


@pytest.mark.parametrize(
    ("body", "begins", "why"),
    [
        (
            "y = Relu (x) t = Identity (s)",
            "zeros",
            r"state 's' does not grow along axis 1: all steps left it as \[1, 0, 2\]",
        ),
        (
            "y = Relu (x) t = Concat <axis = 0> (s, s)",
            "zeros",
            r"has the shape \[1, 0, 2\], and 't' has \[2, 0, 2\]",
        ),
        ("y = Add (x, s) t = Concat <axis = 1> (s, x)", "file", "does not run on the step step-001 of the stream"),
    ],
)
def test_a_model_that_does_not_grow_as_said_is_refused(
    tmp_path: Path, body: str, begins: Literal["zeros", "file"], why: str
) -> None:
    """The last one adds its state to three rows, and so cannot have more of them."""
    text = (
        '<ir_version: 8, opset_import: ["" : 17]> net (float[1, 3, 2] x, float[1, past, 2] s)'
        f" => (float[1, q, 2] y, float[p, total, 2] t) {{ {body} }}"
    )
    model = models.save(onnx.parser.parse_model(text), tmp_path / "model")
    state = encode((StateLink(input="s", output="t", initial=begins, file="initial", grows=1),))
    np.save(tmp_path / "start.npy", np.zeros((1, 3, 2), np.float32))
    with pytest.raises(UsageError, match=why) as caught:
        record(model, tmp_path / "golden", initial=tmp_path / "start.npy", state=state, count=3)
    assert caught.value.hint


def alter(scale: float) -> onnx.ModelProto:
    """The model with other recurrent weights, as a quantiser changes them."""
    changed = make_gru()
    for weight in changed.graph.initializer:
        if weight.name.endswith("_h"):
            weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(scale), weight.name))
    return changed


def test_steps_are_recorded_with_the_states_between_them(model: Path, golden: Path) -> None:
    session = onnxruntime.InferenceSession(model)
    state = np.full((1, UNITS), 0.5, np.float32)
    recorded = read_golden(golden)
    assert recorded.state == {"h0": "hn"}
    assert len(recorded) == STEPS
    for frame, sample in zip(make_frames(STEPS), recorded, strict=True):
        np.testing.assert_array_equal(sample.inputs["x"], frame)
        np.testing.assert_allclose(sample.inputs["h0"], state, atol=1e-5)
        state = session.run(["hn"], {"x": frame, "h0": state})[0]


def test_the_same_model_reproduces_the_stream(model: Path, golden: Path, tmp_path: Path) -> None:
    found = compare(model, golden, tmp_path / "compare")
    assert found.equal
    assert all(len(output.step_sqnr_db) == STEPS for output in found.outputs)


def test_a_changed_model_is_fed_its_own_state(golden: Path, tmp_path: Path) -> None:
    """Its first step has the error of one step; later ones have more, which the recorded states would hide."""
    changed = models.save(alter(1.02), tmp_path / "changed")
    found = {output.name: output for output in compare(changed, golden, tmp_path / "compare").outputs}
    session, state, errors = onnxruntime.InferenceSession(changed), np.full((1, UNITS), 0.5, np.float32), []
    for sample in read_golden(golden):
        state = session.run(["hn"], {"x": sample.inputs["x"], "h0": state})[0]
        errors.append(float(np.abs(state - sample.outputs["hn"]).max()))
    assert found["hn"].max_absolute == pytest.approx(max(errors), rel=1e-3)
    ratios = [ratio for ratio in found["hn"].step_sqnr_db if ratio is not None]
    assert max(ratios[10:]) < ratios[0]


METRIC = """
import numpy as np

def closeness(samples):
    for _ in samples:  # begun and left
        break
    return -max(float(np.abs(sample.answers["hn"] - sample.reference["hn"]).max()) for sample in samples)
"""


def test_a_users_metric_sees_the_errors_that_add_up(golden: Path, tmp_path: Path) -> None:
    """As much as the comparison, at every iteration anew; the original has none."""
    changed = models.save(alter(1.02), tmp_path / "changed")
    (tmp_path / "metric.py").write_text(METRIC)
    inputs = {"model": changed, "golden": golden, "metric": tmp_path / "metric.py"}
    facts = call_stage("measure_metric", tmp_path / "metric", inputs, python="closeness").facts
    found = {output.name: output for output in compare(changed, golden, tmp_path / "compare").outputs}
    assert facts["value"] == pytest.approx(-found["hn"].max_absolute, rel=1e-4)
    assert facts["reference"] == 0


def test_synthetic_steps_are_more_than_eight_and_of_one_size(tmp_path: Path) -> None:
    model = models.save(make_gru(), tmp_path / "model")
    recorded = read_golden(record(model, tmp_path / "golden", state=STATE, count=16))
    assert len(recorded) == 16
    assert recorded.synthetic
    assert len({sample.inputs["x"].tobytes() for sample in recorded}) == 16


def test_a_state_among_the_samples_is_refused(model: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "frames.npz", x=make_frames(3), h0=np.zeros((3, 1, UNITS), np.float32))
    with pytest.raises(UsageError, match="the samples do not fit the model") as caught:
        record(model, tmp_path / "golden", tmp_path / "frames.npz", state=STATE)
    assert "no input 'h0'" in " ".join(caught.value.details)


def test_a_set_without_state_says_nothing_of_it(model: Path, tmp_path: Path) -> None:
    index = record(model, tmp_path / "golden")
    assert "state" not in json.loads(index.read_text("ascii"))


def test_a_seeded_stream_keeps_the_sampling_rate_that_its_sizes_need(tmp_path: Path) -> None:
    model = models.save(make_voice(), tmp_path / "voice")
    state = encode((StateLink(input="h0", output="hn"),))
    golden = read_golden(record(model, tmp_path / "golden", state=state, count=8, dimensions={"samples": 8}))
    assert len(golden) == 8
    assert {int(sample.inputs["rate"]) for sample in golden} == {16000}
