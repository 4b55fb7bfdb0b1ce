/** Streams of a model with state: what goes from step to step, what is refused, and what is given back. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { makePackage } from "../../../templates/web/package/loader/index.js";
import { makeBundle } from "../../../templates/web/package/loader/several.js";
import { Stream } from "../../../templates/web/package/loader/stream.js";
import { asset, bytesOf, componentOf, digest, packageOf, platformOf, port, runtime, Tensor, variant } from "./fakes.js";

const fixed = (/** @type {string} */ name, shape = [2]) => port(name, { shape });
const signature = { inputs: [fixed("x"), fixed("h0")], outputs: [fixed("y"), fixed("hn")] };
const link = { input: "h0", output: "hn", initial: "zeros", value: 0, file: "", shape: [], grows: null };
const x = Float32Array.of(1, 10);

/** @param {string} location where the state stays */
const accumulate = (location) => {
  /** @type {Tensor[]} */
  const states = [];
  const run = (/** @type {any} */ { x: given, h0 }) => {
    const sum = given.data.map((/** @type {number} */ value, /** @type {number} */ at) => value + h0.data[at]);
    const hn = new Tensor("float32", sum, [2], location);
    states.push(hn);
    return { y: new Tensor("float32", sum.slice(), [2]), hn };
  };
  return { run, states };
};

/**
 * @param {{ state?: object, signature?: any, run?: any, files?: any, assets?: any, location?: string }} [given]
 */
async function open({ state = {}, signature: ports = signature, run, files, assets = {}, location = "cpu" } = {}) {
  const { run: add, states } = accumulate(location);
  const data = packageOf([variant("wasm")], { signature: ports, state: [{ ...link, ...state }] });
  Object.assign(data.assets, assets);
  const ort = runtime({ run: run ?? add });
  const { platform } = platformOf(data, { modules: [ort], files });
  const model = /** @type {any} */ (await makePackage({ ...data, Stream }, platform).load());
  return { model, stream: model.stream(), states, ort };
}

describe("a stream", () => {
  it("goes on from the state before, and begins again", async () => {
    const { stream } = await open();
    assert.deepEqual((await stream.run({ x })).y.data, Float32Array.of(1, 10));
    const second = await stream.run({ x });
    assert.deepEqual(Object.keys(second), ["y"]);
    assert.deepEqual(second.y.data, Float32Array.of(2, 20));
    stream.reset();
    assert.deepEqual((await stream.run({ x })).y.data, Float32Array.of(1, 10));
  });

  it("has a state of its own", async () => {
    const { model, stream } = await open();
    const other = model.stream();
    await Promise.all([stream.run({ x }), other.run({ x })]);
    await stream.run({ x });
    assert.deepEqual((await stream.getState()).h0.data, Float32Array.of(2, 20));
    assert.deepEqual((await other.getState()).h0.data, Float32Array.of(1, 10));
  });

  it("begins with a constant", async () => {
    const { stream } = await open({ state: { initial: "constant", value: 0.5 } });
    assert.deepEqual((await stream.run({ x })).y.data, Float32Array.of(1.5, 10.5));
  });

  it("begins with a file of the payload, which is checked", async () => {
    const bytes = new Uint8Array(Float32Array.of(3, 4).buffer);
    const part = { path: "h0.bin", url: "h0.bin", size: 8, sha256: digest(bytes) };
    const assets = { "payload/state/h0.bin": { ...asset("h0.bin", []), size: 8, sha256: part.sha256, parts: [part] } };
    const state = { initial: "file", file: "state/h0.bin", shape: [2] };
    const { stream } = await open({ state, assets, files: { "h0.bin": () => bytes } });
    assert.deepEqual((await stream.run({ x })).y.data, Float32Array.of(4, 14));
    const altered = await open({ state, assets, files: { "h0.bin": () => bytesOf("altered!") } });
    await assert.rejects(altered.stream.run({ x }), { name: "IntegrityError", message: /state\/h0\.bin/ });
    const lost = await open({ state });
    await assert.rejects(lost.stream.run({ x }), { name: "IntegrityError", message: /not among the files/ });
  });

  it("grows along an axis", async () => {
    const ports = { inputs: [fixed("x"), port("h0", { shape: [1, "past", 2] })], outputs: [port("hn", { shape: [1, "all", 2] })] };
    const run = (/** @type {any} */ { x: given, h0 }) => ({
      hn: new Tensor("float32", Float32Array.of(...h0.data, ...given.data), [1, h0.dims[1] + 1, 2]),
    });
    const { stream } = await open({ state: { grows: 1 }, signature: ports, run });
    await stream.run({ x });
    await stream.run({ x });
    const { h0 } = await stream.getState();
    assert.deepEqual([h0.dims, h0.data], [[1, 2, 2], Float32Array.of(1, 10, 1, 10)]);
  });

  it("goes on from a state that was copied", async () => {
    const { stream } = await open();
    await stream.run({ x });
    const before = await stream.getState();
    await stream.run({ x });
    stream.setState(before);
    before.h0.data[0] = 99; // The copy is the caller's.
    assert.deepEqual((await stream.run({ x })).y.data, Float32Array.of(2, 20));
    assert.throws(() => stream.setState({}), { name: "InputError", message: /"h0" is missing/ });
  });

  it("feeds tensors of the GPU back as they are, and gives each back once", async () => {
    const fed = /** @type {any[]} */ ([]);
    const { run: add, states } = accumulate("gpu-buffer");
    const { stream } = await open({ run: (/** @type {any} */ feeds) => (fed.push(feeds.h0), add(feeds)) });
    for (let step = 0; step < 3; step++) await stream.run({ x });
    assert.deepEqual(fed.slice(1), states.slice(0, 2));
    assert.deepEqual(states.map((tensor) => tensor.location), ["none", "none", "gpu-buffer"]);
    stream.close();
    assert.equal(states[2].location, "none");
  });

});

describe("a stream refuses", () => {
  it("a second run before the first has ended, and a reset", async () => {
    const { stream } = await open();
    const first = stream.run({ x });
    await assert.rejects(stream.run({ x }), { name: "InputError", message: /in use/, hint: /open another/ });
    assert.throws(() => stream.reset(), { message: /in use/ });
    assert.deepEqual((await first).y.data, Float32Array.of(1, 10));
    assert.deepEqual((await stream.run({ x })).y.data, Float32Array.of(2, 20));
  });

  it("its own state as an input", async () => {
    const { stream } = await open();
    await assert.rejects(stream.run({ x, h0: x }), { name: "InputError", message: /"h0" is the stream's own state/ });
  });

  it("a wrong input, and keeps its state", async () => {
    const { stream } = await open();
    await stream.run({ x });
    await assert.rejects(stream.run({ x: Float32Array.of(1) }), { name: "InputError" });
    assert.deepEqual((await stream.run({ x })).y.data, Float32Array.of(2, 20));
  });

  it("all after close, or after its model was disposed of", async () => {
    const { model, stream, states } = await open({ location: "cpu" });
    await stream.run({ x });
    const running = stream.run({ x });
    stream.close();
    assert.deepEqual(states.map((tensor) => tensor.location), ["cpu"]); // The step that is under way reads it.
    await assert.rejects(running, { name: "DisposedError", message: /stream is closed/ });
    assert.deepEqual(states.map((tensor) => tensor.location), ["none", "none"]);
    await assert.rejects(stream.run({ x }), { name: "DisposedError", hint: /open another/ });
    const other = model.stream();
    await model.dispose();
    await assert.rejects(other.run({ x }), { name: "DisposedError", message: /model was disposed/ });
    assert.throws(() => model.stream(), { name: "DisposedError" });
  });
});

describe("state on the GPU", () => {
  it("stays there by the session's options; a run by itself brings it back", async () => {
    const gpu = [variant("webgpu", { providers: [{ name: "webgpu", options: {}, device: null }] })];
    const { makeOptions } = await import("../../../templates/web/package/loader/session.js");
    const state = [/** @type {any} */ (link)];
    assert.deepEqual({ .../** @type {any} */ (makeOptions(gpu[0], signature.outputs, null, [], state).preferredOutputLocation) }, {
      y: "cpu",
      hn: "gpu-buffer",
    });
    assert.equal(makeOptions(variant("wasm"), signature.outputs, null, [], state).preferredOutputLocation, undefined);
    const { model, states } = await open({ location: "gpu-buffer" });
    let read = 0;
    Tensor.prototype.getData = async function () {
      read += 1;
      return /** @type {any} */ (this).data;
    };
    await model.run({ x, h0: x });
    assert.deepEqual([read, states.length], [1, 1]);
  });
});

describe("a bundle of several components", () => {
  it("has a stream for those with state", async () => {
    const data = packageOf([], {}, {
      components: [componentOf("plain"), componentOf("encode", { signature, state: [link] })],
    });
    const { platform } = platformOf(data, { modules: [runtime({ run: accumulate("cpu").run })] });
    const bundle = await makeBundle({ ...data, Stream }, platform).load({ lazy: true });
    const stream = bundle.encode.stream();
    await stream.run({ x });
    assert.deepEqual((await stream.run({ x })).y.data, Float32Array.of(2, 20));
    assert.throws(() => bundle.plain.stream(), { name: "InputError", message: /no state/ });
    await bundle.close();
    await assert.rejects(stream.run({ x }), { name: "DisposedError" });
    assert.throws(() => bundle.encode.stream(), { name: "DisposedError" });
  });
});
