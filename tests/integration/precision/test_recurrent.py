"""A recurrent model in full precision and in int8, verified over 100 steps in the bundle's own runtime."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from tests.support import models
from tests.support.command_line import CommandLine
from tests.support.recurrent_models import make_frames, make_gru

STEPS = 100


@pytest.mark.parametrize(("method", "least_db"), [("none", 100), ("dynamic-int8", 20), ("static-int8", 20)])
def test_a_stream_is_verified_over_a_hundred_steps(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path, method: str, least_db: float
) -> None:
    model = models.save(make_gru(), tmp_path / "model")
    np.savez(tmp_path / "frames.npz", x=make_frames(STEPS))
    np.savez(tmp_path / "others.npz", x=make_frames(STEPS, seed=8))
    data = ("--samples", tmp_path / "frames.npz", "--calibration", tmp_path / "others.npz")
    setting = ("--set", f"precision.method={method}")
    output = tmp_path / "out"
    built = Path(bundler.build(model, *here, "--state", "h0=hn", *data, *setting, "-o", output)["bundle"])
    manifest = json.loads((built / "bundle.json").read_text("utf-8"))
    assert manifest["proof"]["level"] == "executed"
    last = manifest["components"][0]["checks"][-1]
    assert last["samples"] == STEPS
    ratios = [np.inf if found["sqnr_db"] is None else found["sqnr_db"] for found in last["outputs"]]
    assert min(ratios) > least_db
    (runtime,) = built.glob("*/payload/runtime.json")
    (component,) = json.loads(runtime.read_text("utf-8"))["components"]
    assert [(link["input"], link["output"]) for link in component["state"]] == [("h0", "hn")]
    (report,) = output.glob("*.report/report.html")
    text = report.read_text("utf-8")
    assert "steps 1 to 13 at least" in text
    assert "Error over the steps of the stream" in text
    assert text.count("<bdi>steps 92 to 100</bdi>") == 1
    for found in last["outputs"]:
        assert (found["steps_each"], len(found["step_sqnr_db"])) == (2, STEPS // 2)
        assert min(one for one in found["step_sqnr_db"] if one is not None) == found["worst_sqnr_db"]


def test_a_link_that_does_not_fit_ends_before_anything_is_built(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    model = models.save(make_gru(), tmp_path / "model")
    failed = bundler.run("build", model, *here, "--state", "h0=hm", "-o", tmp_path / "out").expect(2)
    assert "the model has no output 'hm'; did you mean 'hn'?" in failed.err
    assert "likely: --state h0=hn" in failed.err
    assert not list((tmp_path / "out").glob("*/bundle.json"))


def test_a_project_file_links_state(bundler: CommandLine, tmp_path: Path) -> None:
    models.save(make_gru(), tmp_path / "model")
    text = 'targets = ["linux-x64"]\n[[models]]\npath = "model/model.onnx"\n'
    (tmp_path / "bundler.toml").write_text(text + 'state = { h0 = { output = "hn", initial = 0.5 } }\n', "utf-8")
    here = CommandLine(cache=bundler.cache, cwd=tmp_path)
    (plan,) = here.run("plan", "--json").expect(0).document["plans"]
    assert '"initial": "constant"' in json.dumps(plan)


def test_a_state_that_grows_is_refused_by_its_axis(bundler: CommandLine, here: tuple[str, ...], tmp_path: Path) -> None:
    text = (
        '<ir_version: 8, opset_import: ["" : 17]> net (float[1, 1, 8] x, float[1, past, 8] past_k)'
        " => (float[1, 1, 8] y, float[1, total, 8] present_k)"
        " { present_k = Concat <axis = 1> (past_k, x) y = ReduceMean <axes = [1]> (present_k) }"
    )
    model = models.save(onnx.parser.parse_model(text), tmp_path / "model")
    shown = bundler.run("inspect", model).expect(0).out
    assert "likely past_k → present_k   (grows along axis 1, which --state cannot link)" in shown
    failed = bundler.run("plan", model, *here, "--state", "past_k=present_k").expect(2)
    assert "the output may be longer than the input along axis 1" in failed.err
    assert "likely:" not in failed.err
