"""Golden sets that are the steps of one stream: recorded from the original model, compared as a stream."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from bundler.model.codec import encode
from bundler.model.errors import UsageError
from bundler.model.state import StateLink
from bundler.onnxkit.golden import read_golden
from tests.support import models
from tests.support.recurrent_models import UNITS, make_frames, make_gru
from tests.support.stage_calls import call_stage, compare, record

STATE = encode((StateLink(input="h0", output="hn", initial="constant", value=0.5),))
STEPS = 100


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return models.save(make_gru(), tmp_path / "model")


@pytest.fixture
def golden(model: Path, tmp_path: Path) -> Path:
    np.savez(tmp_path / "frames.npz", x=make_frames(STEPS))
    return record(model, tmp_path / "golden", tmp_path / "frames.npz", state=STATE, max_samples=STEPS)


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
