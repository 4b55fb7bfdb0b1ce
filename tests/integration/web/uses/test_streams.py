"""Streams of a web bundle in a real browser: a recurrent model, built and verified by the real command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.support.command_line import CommandLine
from tests.support.decoder_models import DEPTH, HEADS, make_decoder, make_tokens
from tests.support.javascript import find_node, run
from tests.support.recurrent_models import UNITS, make_frames, make_gru
from tests.support.web_host import host
from tests.support.web_pages import Visitor

STEPS = 100


def build_gru(bundler: CommandLine, folder: Path, target: str, *options: str, initial: str = "0.25") -> Path:
    onnx.save(make_gru(), folder / "gru.onnx")
    samples = folder / "frames"
    samples.mkdir()
    for step, frame in enumerate(make_frames(STEPS)):
        np.savez(samples / f"{step:03}.npz", x=frame)
    built = bundler.build(
        folder / "gru.onnx", f"--target={target}", f"--state=h0=hn,initial={initial}", f"--samples={samples}",
        f"--output={folder / 'out'}", *options
    )  # fmt: skip
    return Path(built["bundle"])


@pytest.fixture(scope="module")
def bundle(bundler: CommandLine, chromium: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    del chromium  # Verifying finds it by itself, where it is installed.
    return build_gru(bundler, tmp_path_factory.mktemp("gru"), "web-wasm")


STREAM = """
const model = await load();
const stream = model.stream();
const scores = [];
let reads = 0;
if (globalThis.GPUBuffer) {
  const { mapAsync } = GPUBuffer.prototype;
  GPUBuffer.prototype.mapAsync = function (...given) { reads += 1; return mapAsync.apply(this, given); };
}
for (const x of frames) {
  const outputs = await stream.run({ x: Float32Array.from(x) });
  scores.push([...await outputs.scores.getData()]);
}
const readBySteps = reads;
const state = [...(await stream.getState()).h0.data];
const first = stream.run({ x: Float32Array.from(frames[0]) });
const second = await stream.run({ x: Float32Array.from(frames[0]) }).catch((error) => error.message);
await first;
stream.reset();
const again = [...(await (await stream.run({ x: Float32Array.from(frames[0]) })).scores.getData())];
const plain = await model.run({ x: Float32Array.from(frames[0]), h0: new Float32Array(64).fill(0.25) });
const place = plain.hn.location;
stream.close();
const closed = await stream.run({}).catch((error) => error.name);
const test = await model.selfTest();
const { variant } = model.report;
await model.dispose();
return { scores, readBySteps, state, second, again, place, closed, test, variant };
"""


def run_by_hand() -> tuple[np.ndarray, np.ndarray]:
    """Scores of each step and the last state, by the runtime for Python."""
    session = onnxruntime.InferenceSession(make_gru().SerializeToString())
    state, steps = np.full((1, UNITS), 0.25, np.float32), []
    for frame in make_frames(STEPS):
        scores, state = session.run(["scores", "hn"], {"x": frame, "h0": state})
        steps.append(scores[0])
    return np.array(steps), state[0]


def stream_frames(guest: Visitor) -> dict[str, Any]:
    frames = json.dumps(make_frames(STEPS)[:, 0].tolist())
    return dict(guest.value(f"const frames = {frames}; {STREAM}"))


def assert_equal_steps(found: dict[str, Any]) -> None:
    scores, state = run_by_hand()
    np.testing.assert_allclose(found["scores"], scores, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found["state"], state, rtol=1e-4, atol=1e-4)
    assert found["again"] == found["scores"][0]
    assert "the stream is in use" in found["second"]
    assert (found["place"], found["closed"]) == ("cpu", "DisposedError")
    assert found["test"]["passed"], found["test"]
    assert found["test"]["samples"] == STEPS


def test_its_steps_were_verified_in_the_browser(bundle: Path) -> None:
    manifest = json.loads((bundle / "bundle.json").read_text("utf-8"))
    assert [(one["variant"], one["level"]) for one in manifest["proof"]["variants"]] == [("wasm", "executed")]
    index = json.loads((bundle / "payload" / "golden" / "index.json").read_text("utf-8"))
    assert (index["state"], len(index["samples"])) == ({"h0": "hn"}, STEPS)


def test_a_stream_in_the_page_equals_the_runtime_of_python(guest: Visitor, bundle: Path) -> None:
    with host(bundle) as site:
        guest.visit(site)
        assert_equal_steps(stream_frames(guest))


def test_a_stream_in_node_equals_the_runtime_of_python(bundle: Path) -> None:
    frames = json.dumps(make_frames(STEPS)[:, 0].tolist())
    code = f"""
        import {{ load }} from {json.dumps((bundle / "node.js").as_uri())};
        const frames = {frames};
        const run = async () => {{ {STREAM} }};
        console.log(JSON.stringify(await run()));
    """
    (bundle.parent / "stream.mjs").write_text(code, "utf-8")
    assert_equal_steps(json.loads(run((find_node(), "stream.mjs"), bundle.parent)))


FROM_FILE = """
const model = await load();
const stream = model.stream();
const before = [...(await stream.getState()).h0.data];
await stream.run({ x: new Float32Array(40) });
stream.reset();
const after = [...(await stream.getState()).h0.data];
const { passed } = await model.selfTest();
return { before, after, passed };
"""


def test_a_stream_begins_with_the_array_of_a_file(guest: Visitor, bundler: CommandLine, tmp_path: Path) -> None:
    start = np.linspace(-1, 1, UNITS, dtype=np.float32).reshape(1, UNITS)
    np.save(tmp_path / "start.npy", start)
    with host(build_gru(bundler, tmp_path, "web-wasm", initial=str(tmp_path / "start.npy"))) as site:
        found = guest.visit(site).value(FROM_FILE)
    assert found == {"before": start[0].tolist(), "after": start[0].tolist(), "passed": True}


TOKENS = (5, *[1] * 20, 3, 1, 2)
GROWING = """
const model = await load();
const stream = model.stream();
const logits = [];
for (const step of steps) {
  const outputs = await stream.run({ tokens: { data: BigInt64Array.from(step, BigInt), dims: [1, step.length] } });
  logits.push(...await outputs.logits.getData());
}
const { past_k } = await stream.getState();
stream.reset();
const { past_v: begun } = await stream.getState();
const again = await stream.run({ tokens: { data: BigInt64Array.from(steps[0], BigInt), dims: [1, steps[0].length] } });
const first = [...await again.logits.getData()];
const test = await model.selfTest();
const { variant } = model.report;
await model.dispose();
return { logits, dims: past_k.dims, keys: [...past_k.data], begun: begun.dims, first, test, variant };
"""


def build_decoder(bundler: CommandLine, folder: Path, target: str, *options: str) -> Path:
    onnx.save(make_decoder(), folder / "decoder.onnx")
    samples = folder / "steps"
    samples.mkdir()
    for step, tokens in enumerate(split_tokens()):
        np.savez(samples / f"{step:03}.npz", tokens=tokens)
    links = [f"--state=past_{kind}=present_{kind},grows=2" for kind in "kv"]
    given = (*links, f"--samples={samples}", f"--output={folder / 'out'}", *options)
    return Path(bundler.build(folder / "decoder.onnx", f"--target={target}", *given)["bundle"])


def split_tokens() -> list[np.ndarray]:
    return np.split(make_tokens(sum(TOKENS)), np.cumsum(TOKENS)[:-1], axis=1)


def decode_whole() -> list[np.ndarray]:
    """Logits, keys and values of all tokens at once, by the runtime for Python."""
    none = np.zeros((1, HEADS, 0, DEPTH), np.float32)
    session = onnxruntime.InferenceSession(make_decoder().SerializeToString())
    return list(session.run(None, {"tokens": make_tokens(sum(TOKENS)), "past_k": none, "past_v": none}))


def assert_equal_decoding(found: dict[str, Any]) -> None:
    logits, keys, _ = decode_whole()
    np.testing.assert_allclose(found["logits"], logits.ravel(), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found["keys"], keys.ravel(), rtol=1e-3, atol=1e-3)
    assert (found["dims"], found["begun"]) == (list(keys.shape), [1, HEADS, 0, DEPTH])
    np.testing.assert_allclose(found["first"], found["logits"][: len(found["first"])], rtol=1e-5, atol=1e-5)
    assert found["test"]["passed"], found["test"]
    assert found["test"]["samples"] == len(TOKENS)


STEPS_OF_TOKENS = f"const steps = {json.dumps([step[0].tolist() for step in split_tokens()])};"


def test_keys_and_values_grow_in_the_page_and_in_node(guest: Visitor, bundler: CommandLine, tmp_path: Path) -> None:
    bundle = build_decoder(bundler, tmp_path, "web-wasm")
    manifest = json.loads((bundle / "bundle.json").read_text("utf-8"))
    assert [(one["variant"], one["level"]) for one in manifest["proof"]["variants"]] == [("wasm", "executed")]
    with host(bundle) as site:
        assert_equal_decoding(dict(guest.visit(site).value(f"{STEPS_OF_TOKENS} {GROWING}")))
    code = f"""
        import {{ load }} from {json.dumps((bundle / "node.js").as_uri())};
        {STEPS_OF_TOKENS}
        const run = async () => {{ {GROWING} }};
        console.log(JSON.stringify(await run()));
    """
    (tmp_path / "grow.mjs").write_text(code, "utf-8")
    assert_equal_decoding(json.loads(run((find_node(), "grow.mjs"), tmp_path)))


def test_keys_and_values_grow_on_the_gpu(guest: Visitor, bundler: CommandLine, tmp_path: Path) -> None:
    with host(build_decoder(bundler, tmp_path, "web-webgpu", "--no-prove")) as site:
        states = guest.visit(site).value("return probe();")
        if not states[0]["available"]:
            pytest.skip(f"this browser offers no WebGPU: {states[0]['reason']}")
        found = dict(guest.value(f"{STEPS_OF_TOKENS} {GROWING}"))
    assert found["variant"] == "webgpu"
    assert_equal_decoding(found)


def test_the_state_stays_on_the_gpu(guest: Visitor, bundler: CommandLine, tmp_path: Path) -> None:
    with host(build_gru(bundler, tmp_path, "web-webgpu", "--no-prove")) as site:
        states = guest.visit(site).value("return probe();")
        if not states[0]["available"]:
            pytest.skip(f"this browser offers no WebGPU: {states[0]['reason']}")
        found = stream_frames(guest)
        assert found["variant"] == "webgpu"
        assert found["readBySteps"] == STEPS  # the scores; the state is read by nobody
        assert_equal_steps(found)


def test_eight_bits_go_on_from_their_own_state(guest: Visitor, bundler: CommandLine, tmp_path: Path) -> None:
    bundle = build_gru(bundler, tmp_path, "web-wasm", "--set=precision.method=dynamic-int8")
    manifest = json.loads((bundle / "bundle.json").read_text("utf-8"))
    assert [(one["variant"], one["level"]) for one in manifest["proof"]["variants"]] == [("wasm", "executed")]
    with host(bundle) as site:
        guest.visit(site)
        found = stream_frames(guest)
    scores, _ = run_by_hand()
    errors = np.abs(np.array(found["scores"]) - scores).max(axis=1)
    assert 0 < errors[0] < errors.max() < 0.2 * np.abs(scores).max()
    assert found["test"]["passed"], found["test"]


TWO = """
const bundle = await load();
const [hear, speak] = [bundle.hear.stream(), bundle.speak.stream()];
const scores = { hear: [], speak: [] };
for (const x of frames) {
  const [one, other] = await Promise.all([hear, speak].map((stream) => stream.run({ x: Float32Array.from(x) })));
  scores.hear.push([...one.scores.data]);
  scores.speak.push([...other.scores.data]);
}
const tests = [await bundle.hear.selfTest(), await bundle.speak.selfTest()].map(({ passed }) => passed);
await bundle.close();
const closed = await hear.run({ x: Float32Array.from(frames[0]) }).catch((error) => error.name);
return { ...scores, tests, closed };
"""


def test_components_have_streams_of_their_own(guest: Visitor, bundler: CommandLine, tmp_path: Path) -> None:
    given = []
    for name in ("hear", "speak"):
        onnx.save(make_gru(seed=3 if name == "hear" else 4), tmp_path / f"{name}.onnx")
        given.append(f"{name}={tmp_path / name}.onnx")
    arguments = ("--bundle=pair", "--target=web-wasm", f"--output={tmp_path / 'out'}")
    built = bundler.build(*given, *arguments, "--state=hear:h0=hn,initial=0.25", "--state=speak:h0=hn")
    frames = json.dumps(make_frames(9)[:, 0].tolist())
    with host(Path(built["bundle"])) as site:
        found = guest.visit(site).value(f"const frames = {frames}; {TWO}")
    np.testing.assert_allclose(found["hear"], run_by_hand()[0][:9], rtol=1e-4, atol=1e-4)
    assert np.abs(np.array(found["speak"]) - found["hear"]).max() > 0.1
    assert (found["tests"], found["closed"]) == ([True, True], "DisposedError")
