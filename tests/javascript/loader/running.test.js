/** Runs of an open model: inputs, order, faults, and the end. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { makeSelfTest } from "../../../templates/web/package/loader/selftest.js";
import { makePackage } from "../../../templates/web/package/loader/index.js";
import { asset, bytesOf, packageOf, platformOf, port, runtime, Tensor, variant } from "./fakes.js";

/**
 * @param {Parameters<typeof runtime>[0]} [hooks]
 * @param {Parameters<typeof packageOf>} given
 */
async function open(hooks, ...given) {
  const ort = runtime(hooks);
  const { platform, data } = platformOf(packageOf(...given), { modules: [ort, runtime()] });
  const { load } = makePackage(data, platform);
  return { model: await load(), ort, load };
}

const x = Float32Array.of(1, 2, 3, 4);

describe("inputs", () => {
  it("find their shape in the signature when one dimension is open", async () => {
    const { model } = await open();
    const { y } = await model.run({ x });
    assert.deepEqual(y.dims, [2, 2]);
    assert.deepEqual(y.data, Float32Array.of(2, 3, 4, 5));
  });

  /** @type {[string, any, RegExp, RegExp][]} */
  const refused = [
    ["none", {}, /input "x" is missing/, /float32\[batch, 2\]/],
    ["a misspelt one", { X: x }, /no input is named "X"/, /the inputs are "x": float32\[batch, 2\]/],
    ["one too many", { x, z: x }, /no input is named "z"/, /the inputs are/],
    ["another type", { x: Float64Array.of(1, 2) }, /has the wrong type/, /give Float32Array/],
    ["a plain array", { x: [1, 2] }, /has the wrong type/, /give Float32Array/],
    ["half a row", { x: Float32Array.of(1, 2, 3) }, /wrong number of elements/, /float32\[batch, 2\]/],
    ["another rank", { x: { data: x, dims: [4] } }, /has shape \[4\]/, /float32\[batch, 2\]/],
    ["another fixed size", { x: { data: x, dims: [1, 4] } }, /has shape \[1, 4\]/, /float32\[batch, 2\]/],
    ["dims that do not fit", { x: { data: x, dims: [3, 2] } }, /wrong number of elements/, /float32\[batch, 2\]/],
    ["odd dims", { x: { data: x, dims: [-2, -2] } }, /no proper dims/, /dims/],
    ["nothing", { x: null }, /has the wrong type/, /give Float32Array/],
    ["a bare array", x, /given by name/, /give an object/],
    [
      "a tensor of another device",
      { x: new Tensor("float32", x, [2, 2], "gpu-buffer") },
      /memory of another device/,
      /getData/,
    ],
  ];
  for (const [what, given, message, hint] of refused) {
    it(`are refused: ${what}`, async () => {
      const { model } = await open();
      await assert.rejects(model.run(given), { name: "InputError", message, hint });
    });
  }

  /** @type {[any, any, RegExp, RegExp][]} */
  const pinned = [
    ["target", { data: x, dims: [1, 4] }, /fixed to "width" = 2 by the target that it was built for/, /--dim or --shape/],
    ["user", { data: x, dims: [1, 4] }, /fixed to "width" = 2 when it was built/, /--dim or --shape/],
    ["model", { data: x, dims: [1, 4] }, /the original model ran at no other size that was tried/, /^give that size$/],
    ["target", Float32Array.of(1, 2, 3), /fixed to "width" = 2 by the target/, /the model takes float32/],
  ];
  for (const [by, value, why, hint] of pinned) {
    it(`of another size than the bundle was fixed to are reported by whom: ${by}, ${value.dims ?? "no dims"}`, async () => {
      const { model } = await open({}, undefined, { fixed_sizes: [{ name: "width", size: 2, by, axes: { x: [1] } }] });
      await assert.rejects(model.run({ x: value }), { name: "InputError", why, hint });
    });
  }

  it("may give one name two sizes, as the runtime allows", async () => {
    const signature = { inputs: [port("x"), port("z")], outputs: [port("y")] };
    const { model } = await open({}, undefined, { signature });
    assert.ok((await model.run({ x, z: Float32Array.of(1, 2) })).y);
  });

  it("come in every type that the runtime takes", async () => {
    /** @type {[string, any, string][]} */
    const types = [
      ["int64", BigInt64Array.of(1n, 2n), "int64"],
      ["bool", Uint8Array.of(0, 1), "bool"],
      ["float16", Uint16Array.of(0, 15360), "float16"],
      ["str", ["a", "b"], "string"],
    ];
    for (const [element_type, data, type] of types) {
      const signature = { inputs: [port("x", { element_type, shape: ["n"] })], outputs: [port("y")] };
      const run = (/** @type {any} */ feeds) => ({ y: feeds.x });
      const { model } = await open({ run }, undefined, { signature });
      assert.equal((await model.run({ x: data })).y.type, type);
    }
  });

  it("may be called as JavaScript's own properties are", async () => {
    const signature = { inputs: [port("__proto__")], outputs: [port("constructor")] };
    const run = (/** @type {any} */ feeds) => ({ constructor: feeds["__proto__"] });
    const { model } = await open({ run }, undefined, { signature });
    const given = JSON.parse('{"__proto__": 0}');
    Object.defineProperty(given, "__proto__", { value: x, enumerable: true });
    const outputs = /** @type {any} */ (await model.run(given));
    assert.deepEqual(outputs.constructor.data, x);
  });
});

describe("runs", () => {
  it("that are asked for at once are done one after the other", async () => {
    let busy = 0;
    let most = 0;
    const run = async (/** @type {any} */ feeds) => {
      most = Math.max(most, (busy += 1));
      await new Promise((done) => setTimeout(done, 5));
      busy -= 1;
      return { y: feeds.x };
    };
    const { model } = await open({ run });
    await Promise.all([model.run({ x }), model.run({ x }), model.run({ x })]);
    assert.equal(most, 1);
  });

  it("go on after one that failed", async () => {
    let calls = 0;
    const run = (/** @type {any} */ feeds) => {
      if ((calls += 1) === 1) throw new Error("bad shape\nfile.cc:1");
      return { y: feeds.x };
    };
    const { model } = await open({ run });
    await assert.rejects(model.run({ x }), { name: "InferenceError", why: "bad shape" });
    assert.ok((await model.run({ x })).y);
  });

  it("tell when memory ran out", async () => {
    for (const message of ["ERROR_CODE: 6, ERROR_MESSAGE: std::bad_alloc", "Array buffer allocation failed"]) {
      const run = () => {
        throw new Error(message);
      };
      const { model } = await open({ run });
      await assert.rejects(model.run({ x }), { name: "OutOfMemoryError", why: message });
    }
  });

  it("take a fresh instance after an abort", async () => {
    const run = () => {
      throw new WebAssembly.RuntimeError("memory access out of bounds");
    };
    const { model, load } = await open({ run });
    await assert.rejects(model.run({ x }), { name: "OutOfMemoryError" });
    await assert.rejects(model.run({ x }), { name: "OutOfMemoryError" });
    const again = await load();
    assert.deepEqual((await again.run({ x })).y.data, Float32Array.of(2, 3, 4, 5));
  });

  it("can be called off while they wait", async () => {
    const { model } = await open();
    const stop = new AbortController();
    const first = model.run({ x });
    const second = model.run({ x }, { signal: stop.signal });
    stop.abort();
    await first;
    await assert.rejects(second, { name: "AbortError" });
  });
});

/** @param {unknown} navigator */
const pretend = (navigator) => Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
const GPU = variant("webgpu", { providers: [{ name: "webgpu", options: {}, device: "gpu-buffer" }] });

describe("a lost GPU", () => {
  it("fails the run under way and all later ones, and a new load gets a new device", async () => {
    /** @type {(info: object) => void} */
    let lose = () => {};
    const device = { lost: new Promise((resolve) => (lose = resolve)) };
    pretend({ gpu: { requestAdapter: async () => ({ features: new Set() }) } });
    const { model, load } = await open({ device, run: () => new Promise(() => {}) }, [GPU]);
    const pending = model.run({ x });
    setTimeout(() => lose({ reason: "unknown", message: "driver reset" }), 5);
    await assert.rejects(pending, { name: "DeviceLostError", why: "driver reset" });
    await assert.rejects(model.run({ x }), { name: "DeviceLostError", hint: /load the model again/ });
    await model.dispose();
    assert.ok((await (await load()).run({ x })).y);
  });
});

describe("the self-test", () => {
  /**
   * @param {string} unjudged
   * @param {any[] | undefined} [recorded]
   */
  async function test(unjudged, recorded) {
    const zeros = "\0".repeat(8);
    const known = { name: "y", signal: null, signals: [], quiet_peak: 0, quantity: false, unjudged };
    const entry = { kind: "tensor", type: "float32", shape: [1, 2], file: "zeros" };
    const samples = recorded ?? [{ name: "first", inputs: { x: entry }, outputs: { y: entry } }];
    const index = JSON.stringify({ synthetic: true, outputs: [known], samples });
    const given = packageOf([variant("wasm")], { unstable_outputs: unjudged ? ["y"] : [] });
    const files = { "payload/golden/index.json": index, "payload/golden/zeros": zeros };
    for (const [path, text] of Object.entries(files)) Object.assign(given.assets, { [path]: asset(path, [text]) });
    const read = Object.entries(files).map(([path, text]) => [`${path}#0`, () => bytesOf(text)]);
    const { platform, data } = platformOf(given, { files: Object.fromEntries(read) });
    return makeSelfTest(data.assets)(await makePackage(data, platform).load());
  }

  it("has no figures of an output that could not be judged", async () => {
    const { passed, unjudged, outputs } = await test("it differs from run to run");
    assert.ok(passed);
    assert.deepEqual(unjudged, { y: "it differs from run to run" });
    const [{ name, ...figures }] = outputs;
    assert.equal(name, "y");
    assert.deepEqual([...new Set(Object.values(figures))], [null]);
  });

  it("has figures of one that could", async () => {
    const { passed, outputs } = await test("");
    assert.ok(!passed);
    assert.deepEqual([outputs[0].equal, outputs[0].max_absolute], [false, 1]);
  });

  it("names the import with the golden set where that is not beside the code", async () => {
    const { model } = await open();
    await assert.rejects(model.selfTest(), { name: "DownloadError", hint: /import \{ selfTest \} from "adder\/self-test"/ });
    const other = /** @type {any} */ ({ run: () => {} });
    await assert.rejects(makeSelfTest({})(other), { name: "InputError", message: "selfTest tests a model that is open" });
  });

  it("does not call reproduced what was not recorded", async () => {
    const input = { kind: "tensor", type: "float32", shape: [1, 2], file: "zeros" };
    const { passed, faults } = await test("", [{ name: "first", inputs: { x: input }, outputs: {} }]);
    assert.ok(!passed);
    assert.deepEqual(faults, ["output 'y': sample 'first' has no recorded value of it"]);
    await assert.rejects(test("", []), { name: "IntegrityError", message: /has no samples/ });
  });
});

describe("dispose", () => {
  it("releases the session and what outputs still hold, once", async () => {
    const kept = new Tensor("float32", x, [2, 2], "gpu-buffer");
    const { model, ort } = await open({ run: () => ({ y: kept }) }, [variant("wasm")]);
    await model.run({ x });
    await model.dispose();
    await model.dispose();
    assert.equal(kept.location, "none");
    assert.equal(ort.released, 1);
    await assert.rejects(model.run({ x }), { name: "DisposedError" });
    await assert.rejects(model.selfTest(), { name: "DisposedError" });
  });
});
