/** A package whose `runtime.json` asks for more than bundler ever writes: nothing of it is opened. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { openGolden } from "../../../templates/web/package/loader/golden.js";
import { makePackage } from "../../../templates/web/package/loader/index.js";
import { asset, bytesOf, digest, packageOf, platformOf, runtime, variant } from "./fakes.js";

/** @param {string} path */
const file = (path) => ({ path, size: 5, sha256: digest("model") });

/**
 * What loading a package with one such variant says, and what it had asked for by then.
 *
 * @param {any} settings
 * @param {(data: import("./fakes.js").PackageData) => void} [alter]
 */
async function refuse(settings, alter = () => {}) {
  const ort = runtime();
  const { platform, data, asked } = platformOf(packageOf([variant("odd", settings)]), { modules: [ort] });
  alter(data);
  const { load, probe } = makePackage(data, platform);
  const error = await load().then(
    () => assert.fail("it was opened"),
    (/** @type {any} */ found) => found,
  );
  await assert.rejects(probe(), { name: error.name, why: error.why });
  assert.deepEqual([asked, ort.created], [[], []]);
  assert.equal(error.name, "IncompatibleError");
  assert.match(error.message, /has values that bundler never writes/);
  return error.why;
}

describe("an option", () => {
  /** @type {[string, object, RegExp][]} */
  const strange = [
    ["of a session that nobody knows", { session: { optimized_model_filepath: "x" } }, /session has no .*filepath/],
    ["that writes a profile", { session: { enable_profiling: true } }, /session has no "enable_profiling"/],
    ["with another value", { session: { execution_mode: "ORT_WILD" } }, /"execution_mode" of "ORT_WILD"/],
    ["with too many threads", { session: { intra_op_num_threads: 1e9 } }, /"intra_op_num_threads" of 1000000000/],
    ["that names a file", { session_config: { "ep.context_file_path": "x" } }, /session_config has no "ep.context/],
    ["that is no text", { session_config: { "session.x64quantprecision": {} } }, /"session.x64quantprecision" of {}/],
    [
      "of a provider that has none such",
      { providers: [{ name: "webgpu", options: { device: "mine" }, device: null }] },
      /webgpu has no "device" of "mine"/,
    ],
    ["of no provider", { providers: [{ name: "constructor", options: {}, device: null }] }, /no provider "constructor"/],
    ["of a prototype", { providers: [{ name: "__proto__", options: {}, device: null }] }, /no provider "__proto__"/],
    ["called after a prototype", JSON.parse('{"session": {"__proto__": {"logid": "x"}}}'), /session has no "__proto__"/],
  ];
  for (const [what, settings, why] of strange) {
    it(`${what} is refused before anything is fetched`, async () => {
      assert.match(await refuse(settings), why);
    });
  }

  it("that is known goes to the runtime", async () => {
    const settings = { session: { enable_mem_pattern: true }, session_config: { "session.disable_prepacking": "1" } };
    const ort = runtime();
    const { platform, data } = platformOf(packageOf([variant("wasm", settings)]), { modules: [ort] });
    await makePackage(data, platform).load();
    assert.equal(ort.created[0].options.enableMemPattern, true);
    assert.deepEqual(ort.created[0].options.extra, { "session.disable_prepacking": "1" });
  });

  it("keeps the optimisers off that break the model", async () => {
    const ort = runtime();
    const settings = { disabled_optimizers: ["ConstantFolding", "GeluFusionL1"] };
    const { platform, data } = platformOf(packageOf([variant("wasm", settings)]), { modules: [ort] });
    await makePackage(data, platform).load();
    const entry = "optimization.disable_specified_optimizers";
    assert.deepEqual(ort.created[0].options.extra, { [entry]: "ConstantFolding;GeluFusionL1" });
  });
});

describe("a file", () => {
  const names = ["https://evil.test/m.onnx", "//evil.test/m", "/m.onnx", "../m.onnx", "a/../../m", "data:,m", "a\\m", ""];
  for (const name of names) {
    it(`called ${JSON.stringify(name)} is refused, though the package lists it`, async () => {
      const why = await refuse({ model: name, files: [file(name)] }, ({ assets }) => {
        assets[`payload/${name}`] = asset("m", ["model"]);
      });
      assert.match(why, /is not among the files of this package/);
    });
  }

  it("that the package does not list is refused, and so is one with another digest", async () => {
    assert.match(await refuse({ model: "m.onnx", files: [file("m.onnx")] }), /"m.onnx" is not among/);
    const other = { ...file("models/wasm/model.onnx"), sha256: digest("other") };
    assert.match(await refuse({ files: [other] }), /"models\/wasm\/model.onnx" is not among/);
  });

  it("that is a variant's model is one of its files", async () => {
    assert.match(await refuse({ model: "models/other.onnx" }), /"models\/other.onnx" is not among/);
  });
});

describe("a golden set", () => {
  it("that names a file which the package does not list is refused", async () => {
    const inputs = { x: { kind: "tensor", type: "float32", shape: [2], file: "../../../else.bin" } };
    const index = JSON.stringify({ synthetic: true, outputs: [], samples: [{ name: "0", inputs, outputs: {} }] });
    const data = packageOf();
    const path = "payload/golden/index.json";
    data.assets[path] = asset(path, [index]);
    const { platform, asked } = platformOf(data, { files: { [`${path}#0`]: () => bytesOf(index) } });
    const golden = await openGolden({ ...data, component: data.config.components[0] }, platform);
    await assert.rejects(golden.read().next(), { name: "IntegrityError", message: /else.bin is not among the files/ });
    assert.deepEqual(asked, [`${path}#0`]);
  });
});
