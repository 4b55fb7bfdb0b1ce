/** Which variant runs, what is said of the others, and how the runtime is set up. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { afterEach, describe, it } from "node:test";

import { makePackage } from "../../../templates/web/package/loader/index.js";
import { packageOf, platformOf, port, runtime, variant } from "./fakes.js";

const GPU = {
  builds: ["wasm"],
  providers: [
    { name: "webgpu", options: {}, device: "gpu-buffer" },
    { name: "wasm", options: {}, device: null },
  ],
};

const COUNTS = JSON.parse(readFileSync(new URL("../../vectors/threads.json", import.meta.url), "utf8"));

/** @param {unknown} navigator */
const pretend = (navigator) => Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
const real = Object.getOwnPropertyDescriptor(globalThis, "navigator");
afterEach(() => {
  if (real) Object.defineProperty(globalThis, "navigator", real);
  else Reflect.deleteProperty(globalThis, "navigator");
});

/** @param {object} [more] */
const adapter = (more = {}) => ({ info: { vendor: "acme", architecture: "g1" }, features: new Set(), ...more });

describe("the choice of a variant", () => {
  it("takes the next one when there is no WebGPU, and says why", async () => {
    pretend({});
    const { platform, data } = platformOf(packageOf([variant("webgpu", GPU), variant("wasm")]));
    const { report } = await makePackage(data, platform).load();
    assert.equal(report.variant, "wasm");
    assert.ok(report.fellBack);
    assert.match(report.rejected.webgpu, /WebGPU is not available here/);
  });

  it("takes none in strict mode", async () => {
    pretend({});
    const { platform, data } = platformOf(packageOf([variant("webgpu", GPU), variant("wasm")]));
    await assert.rejects(makePackage(data, platform).load({ strict: true }), { name: "FallbackError" });
  });

  it("lets the caller be less strict than the bundle", async () => {
    pretend({});
    const { platform, data } = platformOf(packageOf([variant("webgpu", GPU), variant("wasm")], {}, { fallback: "strict" }));
    await assert.rejects(makePackage(data, platform).load(), { name: "FallbackError" });
    assert.equal((await makePackage(data, platform).load({ strict: false })).report.variant, "wasm");
  });

  it("falls back when the runtime cannot open it", async () => {
    pretend({ gpu: { requestAdapter: async () => adapter() } });
    const create = (/** @type {any} */ _model, /** @type {any} */ options) => {
      if (options.executionProviders[0].name === "webgpu") throw new Error("no kernel for it\nat 0x1");
    };
    const { platform, data } = platformOf(packageOf([variant("webgpu", GPU), variant("wasm")]), {
      modules: [runtime({ create })],
    });
    const { report } = await makePackage(data, platform).load();
    assert.equal(report.rejected.webgpu, "the runtime could not open it (no kernel for it)");
  });

  it("lists every reason when nothing can run", async () => {
    pretend({ gpu: { requestAdapter: async () => null } });
    const { platform, data } = platformOf(packageOf([variant("webgpu", GPU)]));
    await assert.rejects(makePackage(data, platform).load(), {
      name: "IncompatibleError",
      why: "webgpu: the browser has WebGPU but offers no GPU: its driver may be missing or blocked",
    });
  });

  it("refuses an unknown name", async () => {
    const { platform, data } = platformOf(packageOf());
    await assert.rejects(makePackage(data, platform).load({ variant: "npu" }), {
      name: "InputError",
      hint: "the variants are wasm",
    });
  });

  it("refuses another version of the runtime", async () => {
    const ort = runtime();
    ort.env.versions.web = "1.29.0";
    const { platform, data } = platformOf(packageOf(), { modules: [ort] });
    await assert.rejects(makePackage(data, platform).load(), {
      why: /built for onnxruntime-web 1.30.0; found 1.29.0/,
    });
  });

  it("asks for shader-f16 where the model takes float16", async () => {
    pretend({ gpu: { requestAdapter: async () => adapter() } });
    const signature = { inputs: [port("x", { element_type: "float16" })], outputs: [port("y")] };
    const { platform, data } = platformOf(packageOf([variant("webgpu", GPU), variant("wasm")], { signature }));
    const states = await makePackage(data, platform).probe();
    assert.match(states[0].reason, /shader-f16/);
    assert.deepEqual(states[1], { name: "wasm", available: true, reason: "" });
  });

  it("takes no GPU that lacks what a variant was made for", async () => {
    pretend({ gpu: { requestAdapter: async () => adapter() } });
    const half = variant("webgpu", GPU);
    half.requires = { ...half.requires, features: ["shader-f16"] };
    const { platform, data } = platformOf(packageOf([half, variant("wasm")]));
    const { report } = await makePackage(data, platform).load();
    assert.equal(report.variant, "wasm");
    assert.match(report.rejected.webgpu, /does not support float16, .*shader-f16/);
    pretend({ gpu: { requestAdapter: async () => adapter({ features: new Set(["shader-f16"]) }) } });
    const able = platformOf(packageOf([half, variant("wasm")]));
    assert.equal((await makePackage(able.data, able.platform).load()).report.variant, "webgpu");
  });

  it("says that a GPU is emulated", async () => {
    pretend({
      gpu: { requestAdapter: async () => adapter({ info: { vendor: "google", architecture: "swiftshader" } }) },
    });
    const { platform, data } = platformOf(packageOf([variant("webgpu", GPU)]));
    const { report } = await makePackage(data, platform).load();
    assert.equal(report.softwareAdapter, true);
    assert.equal(report.adapter, "google swiftshader");
    assert.match(report.notes.join(), /emulated in software/);
  });
});

describe("an import of one variant", () => {
  it("names the import that has another variant", async () => {
    const imports = { name: "adder/wasm", whole: "adder", variants: { model: { webgpu: "adder/webgpu", wasm: "adder/wasm" } } };
    const { platform, data } = platformOf({ ...packageOf(), imports });
    const { load, probe } = makePackage(data, platform);
    const reason = "the variant webgpu is not part of adder/wasm";
    const hint = "import adder/webgpu or adder";
    await assert.rejects(load({ variant: "webgpu" }), { name: "InputError", message: reason, hint });
    await assert.rejects(load({ variant: "toString" }), { message: 'there is no variant "toString"', hint: "the variants are wasm" });
    assert.deepEqual(await probe(), [
      { name: "webgpu", available: false, reason: `${reason}: ${hint}` },
      { name: "wasm", available: true, reason: "" },
    ]);
    assert.equal((await load()).report.variant, "wasm");
  });
});

describe("the settings of the runtime", () => {
  it("are those of runtime.json, in its words", async () => {
    const ort = runtime();
    const session = {
      graph_optimization_level: "ORT_DISABLE_ALL",
      execution_mode: "ORT_SEQUENTIAL",
      enable_mem_pattern: true,
      intra_op_num_threads: 1,
    };
    const chosen = variant("wasm", { session, session_config: { "session.set_denormal_as_zero": "1" } });
    const { platform, data } = platformOf(packageOf([chosen]), { modules: [ort] });
    await makePackage(data, platform).load();
    const { options } = ort.created[0];
    assert.equal(options.graphOptimizationLevel, "disabled");
    assert.equal(options.executionMode, "sequential");
    assert.equal(options.enableMemPattern, true);
    assert.deepEqual(options.extra, { "session.set_denormal_as_zero": "1" });
    assert.deepEqual(options.executionProviders, [{ name: "wasm" }]);
  });

  it("never name the CPU after another provider, which would let the runtime silently drop that one", async () => {
    pretend({ gpu: { requestAdapter: async () => adapter() } });
    const ort = runtime();
    const { platform, data } = platformOf(packageOf([variant("webgpu", GPU)]), { modules: [ort] });
    await makePackage(data, platform).load();
    assert.deepEqual(ort.created[0].options.executionProviders, [{ name: "webgpu" }]);
    assert.deepEqual({ ...ort.created[0].options.preferredOutputLocation }, { y: "gpu-buffer" });
  });

  it("use threads on an isolated page, and name the headers on another", async () => {
    const isolated = platformOf(packageOf(), { settings: { isolated: true, threads: 4 } });
    assert.equal((await makePackage(isolated.data, isolated.platform).load()).report.threads, 4);
    const open = platformOf(packageOf());
    const { report } = await makePackage(open.data, open.platform).load({ threads: 3 });
    assert.equal(report.threads, 1);
    assert.match(
      report.notes.join(),
      /Cross-Origin-Opener-Policy: same-origin.*Cross-Origin-Embedder-Policy: require-corp/,
    );
  });

  it("say what is not a number of threads, whatever it is", async () => {
    /** @type {[unknown, RegExp][]} */
    const cases = [
      [2n, /threads: a value of type bigint/],
      [NaN, /threads: NaN/],
      ["2", /threads: "2"/],
    ];
    for (const [threads, message] of cases) {
      const { platform, data } = platformOf(packageOf([variant("wasm")]));
      const loading = makePackage(data, platform).load({ threads: /** @type {any} */ (threads) });
      await assert.rejects(loading, { name: "InputError", message });
    }
  });

  for (const { threads, accepted } of COUNTS) {
    it(`${accepted ? "have" : "refuse"} ${JSON.stringify(threads)} threads`, async () => {
      const { platform, data } = platformOf(packageOf([variant("wasm")]));
      const loading = makePackage(data, platform).load({ threads });
      if (accepted) await loading;
      else await assert.rejects(loading, { name: "InputError", message: /threads: .*number of threads/s });
    });
  }

  it("hold for every model of the same instance, and a later wish is answered with a note", async () => {
    const { platform, data } = platformOf(packageOf(), { settings: { isolated: true, threads: 2 } });
    const { load } = makePackage(data, platform);
    await load();
    const { report } = await load({ threads: 4 });
    assert.equal(report.threads, 2);
    assert.match(report.notes.join(), /already running with 2 threads/);
  });
});

describe("a runtime that could not start", () => {
  it("is replaced by a fresh instance at the next load", async () => {
    const broken = runtime({
      create: () => {
        throw new Error("no available backend found. ERR: [wasm] RangeError: could not allocate memory");
      },
    });
    const { platform, data } = platformOf(packageOf(), { modules: [broken, runtime()] });
    const { load } = makePackage(data, platform);
    await assert.rejects(load(), { name: "OutOfMemoryError" });
    assert.equal((await load()).report.variant, "wasm");
  });
});
