"""A recurrent model in full precision and in int8, verified over 100 steps in the bundle's own runtime."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

from tests.support import models
from tests.support.command_line import ONE_PYTHON, CommandLine
from tests.support.decoder_models import make_decoder, make_tokens
from tests.support.recurrent_models import UNITS, make_frames, make_gru

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


def test_an_error_that_grows_over_the_stream_is_a_line_on_the_screen(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    """Each step's state is 1.05 times as long as the one before, and so is what it was rounded by."""
    turn = 1.05 * np.linalg.qr(np.random.default_rng(0).normal(size=(64, 64)))[0]
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1, 64] x, float[1, 64] h0) => (float[1, 64] hn)
        { turned = MatMul(h0, w) hn = Add(turned, x) }"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(turn.astype(np.float32), "w"))
    path = models.save(model, tmp_path / "model")
    setting = ("--set", "precision.method=dynamic-int8", "--state", "h0=hn", "--no-prove", "-o", tmp_path / "out")
    built = bundler.run("build", path, *here, *setting).expect(0)
    assert "cpu: gate passed against the original model, 16 steps of a stream" in built.out
    assert "the error grows over the stream: " in built.out
    assert "longer streams were not compared" in built.out
    (readme,) = (tmp_path / "out").glob("*/README.md")
    assert "16 seeded inputs, the steps of one stream" in readme.read_text("utf-8")


def test_steps_that_calibrate_and_judge_are_said_to(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    model = models.save(make_gru(), tmp_path / "model")
    np.savez(tmp_path / "frames.npz", x=make_frames(24))
    setting = ("--samples", tmp_path / "frames.npz", "--set", "precision.method=static-int8", "--no-prove")
    built = bundler.build(model, *here, "--state", "h0=hn", *setting, "-o", tmp_path / "out")
    (component,) = json.loads((Path(built["bundle"]) / "bundle.json").read_text("utf-8"))["components"]
    text = "the steps that judge the model also calibrate it"
    assert text in [weakness["text"] for weakness in component["golden"]["weaknesses"]]
    (report,) = (tmp_path / "out").glob("*.report/report.html")
    assert f"T{text[1:]}." in report.read_text("utf-8")


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
    models.save(make_decoder(), tmp_path / "model")
    links = ", ".join(f'past_{kind} = {{ output = "present_{kind}", grows = 2 }}' for kind in "kv")
    (tmp_path / "bundler.toml").write_text(f"{text}state = {{ {links} }}\n", "utf-8")
    (plan,) = here.run("plan", "--json").expect(0).document["plans"]
    assert [link["grows"] for link in plan["plan"]["components"][0]["state"]] == [2, 2]


def test_an_initial_value_from_a_file_is_shipped_and_verified(bundler: CommandLine, tmp_path: Path) -> None:
    """The bundle is the same wherever the file lies."""
    start = np.linspace(-1, 1, UNITS, dtype=np.float32).reshape(1, UNITS)
    manifests = []
    for name in ("one", "other"):
        folder = tmp_path / name
        models.save(make_gru(), folder / "model")
        (folder / "data").mkdir()
        np.save(folder / "data" / "start.npy", start)
        text = 'targets = ["linux-x64"]\n[[models]]\npath = "model/model.onnx"\n'
        text += 'state = { h0 = { output = "hn", initial = "data/start.npy" } }\n'
        (folder / "bundler.toml").write_text(text, "utf-8")
        here = CommandLine(cache=bundler.cache, cwd=folder)
        (built,) = here.run("build", "--set", ONE_PYTHON, "--json").expect(0).document["bundles"]
        manifest = (Path(built["bundle"]) / "bundle.json").read_text("utf-8")
        assert json.loads(manifest)["proof"]["level"] == "executed"
        manifests.append(manifest)
        (runtime,) = Path(built["bundle"]).glob("*/payload/runtime.json")
        (link,) = json.loads(runtime.read_text("utf-8"))["components"][0]["state"]
        assert (runtime.parent / link["file"]).read_bytes() == start.tobytes()
        assert link["shape"] == [1, UNITS]
        bundler.run("verify", built["bundle"]).expect(0)
    assert manifests[0] == manifests[1]


@pytest.mark.parametrize(
    ("initial", "why"),
    [
        ("gone.npy", "is not a file"),
        ("model.npy", "expected float32[1, 64], got float64[3]"),
        ("large.npy", "(max 67,108,864)"),
    ],
)
def test_a_file_that_is_no_initial_value_ends_the_build(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path, initial: str, why: str
) -> None:
    model = models.save(make_gru(), tmp_path / "model")
    np.save(tmp_path / "model.npy", np.zeros(3))
    with (tmp_path / "large.npy").open("wb") as stream:
        stream.truncate(1 << 40)
    given = f"h0=hn,initial={tmp_path / initial}"
    failed = bundler.run("build", model, *here, "--state", given, "-o", tmp_path / "out").expect(2)
    assert why in failed.err
    assert "numpy.save" in failed.err or "one stream" in failed.err


@pytest.mark.parametrize(
    ("initial", "why"),
    [('"../start.npy"', "leaves its folder"), ('"/tmp/start.npy"', "absolute"), ('"half"', "is not an initial value")],
)
def test_an_initial_value_outside_the_project_is_refused(
    bundler: CommandLine, tmp_path: Path, initial: str, why: str
) -> None:
    models.save(make_gru(), tmp_path / "project" / "model")
    np.save(tmp_path / "start.npy", np.zeros((1, UNITS), np.float32))
    text = 'targets = ["linux-x64"]\n[[models]]\npath = "model/model.onnx"\n'
    text += f'state = {{ h0 = {{ output = "hn", initial = {initial} }} }}\n'
    (tmp_path / "project" / "bundler.toml").write_text(text, "utf-8")
    failed = CommandLine(cache=bundler.cache, cwd=tmp_path / "project").run("plan").expect(2)
    assert "bundler.toml:4: " in failed.err
    assert why in failed.err


STEPS_OF_TOKENS = (6, *[1] * 20, 2, 3, 1)
CACHE = ("--state", "past_k=present_k,grows=2", "--state", "past_v=present_v,grows=2")


def write_steps(folder: Path) -> None:
    folder.mkdir()
    parts = np.split(make_tokens(sum(STEPS_OF_TOKENS)), np.cumsum(STEPS_OF_TOKENS)[:-1], axis=1)
    for step, tokens in enumerate(parts):
        np.savez(folder / f"{step:03}.npz", tokens=tokens)


@pytest.mark.parametrize(("method", "least_db"), [("none", 100), ("static-int8", 20)])
def test_a_decoder_is_verified_with_keys_and_values_that_grow(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path, method: str, least_db: float
) -> None:
    model = models.save(make_decoder(), tmp_path / "model")
    write_steps(tmp_path / "steps")
    shown = bundler.run("inspect", model).expect(0).out
    assert "likely past_k → present_k   (--state past_k=present_k,grows=2)" in shown
    data = ("--samples", tmp_path / "steps", "--set", f"precision.method={method}", "-o", tmp_path / "out")
    built = Path(bundler.build(model, *here, *CACHE, *data)["bundle"])
    manifest = json.loads((built / "bundle.json").read_text("utf-8"))
    assert manifest["proof"]["level"] == "executed"
    last = manifest["components"][0]["checks"][-1]
    assert last["samples"] == len(STEPS_OF_TOKENS)
    assert min(np.inf if found["sqnr_db"] is None else found["sqnr_db"] for found in last["outputs"]) > least_db
    bundler.run("verify", built).expect(0)
    assert bundler.run("bench", built, "--json").expect(0).document


def test_the_search_for_a_precision_takes_streams(bundler: CommandLine, here: tuple[str, ...], tmp_path: Path) -> None:
    model = models.save(make_gru(), tmp_path / "model")
    np.savez(tmp_path / "frames.npz", x=make_frames(20))
    data = ("--samples", tmp_path / "frames.npz", "--set", "precision.method=auto", "-o", tmp_path / "out")
    built = bundler.build(model, *here, "--state", "h0=hn", *data)
    manifest = json.loads((Path(built["bundle"]) / "bundle.json").read_text("utf-8"))
    assert manifest["proof"]["level"] == "executed"


def test_a_state_that_would_grow_says_so_where_it_is_not_asked(
    bundler: CommandLine, here: tuple[str, ...], tmp_path: Path
) -> None:
    model = models.save(make_decoder(), tmp_path / "model")
    failed = bundler.run("plan", model, *here, "--state", "past_k=present_k").expect(2)
    assert "may be longer than the input along axis 2: set grows=2" in failed.err
    assert "likely: --state past_k=present_k,grows=2 --state past_v=present_v,grows=2" in failed.err
    fixed = bundler.run("plan", model, *here, *CACHE, "--dim", "past=16").expect(2)
    assert "past_k grows along axis 2, where past = 16 is given for this build" in fixed.err


def test_variants_that_cannot_grow_are_left_out_aloud(bundler: CommandLine, tmp_path: Path) -> None:
    model = models.save(make_decoder(), tmp_path / "model")
    arguments = ("--target", "snapdragon-8g3", "--format=files", "--no-prove", "-o", tmp_path / "out")
    built = bundler.run("build", model, *CACHE, *arguments).expect(0)
    assert "variant htp of the target is left out of the bundle: Qualcomm QNN requires fixed sizes" in built.err
    (runtime,) = (tmp_path / "out").glob("*/runtime.json")
    (component,) = json.loads(runtime.read_text("utf-8"))["components"]
    assert [variant["name"] for variant in component["variants"]] == ["cpu"]
    assert [link["grows"] for link in component["state"]] == [2, 2]
