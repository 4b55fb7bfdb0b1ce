/** Bundles of several components: opened together or lazily, on one runtime, and closed together. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { makeBundle } from "../../../templates/web/package/loader/several.js";
import { asset, bytesOf, componentOf, packageOf, platformOf, runtime, variant } from "./fakes.js";

const X = { x: { data: new Float32Array(2), dims: [1, 2] } };
const DETECT = "payload/models/detect/model.onnx";

/** @param {string} folder @param {string[]} [names] */
const variantsOf = (folder, names = ["wasm"]) =>
  names.map((name) => {
    const path = `models/${folder}/model.onnx`;
    const { sha256, size } = asset(path, [folder]);
    return variant(name, { model: path, files: [{ path, size, sha256 }] });
  });

/**
 * @param {object} [config]
 * @param {any} [given]
 * @param {string[]} [names] of each component's variants
 */
function bundleOf(config = {}, given = {}, names = ["wasm"]) {
  const components = ["detect", "read"].map((name) =>
    componentOf(name, { model: `${name}-net`, variants: variantsOf(name, names), golden: `golden/${name}` }),
  );
  const data = packageOf([], {}, { components, ...config });
  /** @type {Record<string, () => Uint8Array>} */
  const files = {};
  for (const name of ["detect", "read"]) {
    const path = `payload/models/${name}/model.onnx`;
    data.assets[path] = asset(path, [name]);
    files[`${path}#0`] = () => bytesOf(name);
  }
  const ort = given.ort ?? runtime();
  const host = platformOf(data, { modules: [ort], files: { ...files, ...given.files } });
  return { ...makeBundle(data, host.platform), ort, asked: host.asked };
}

/** @param {string} name of the model that the runtime cannot open, @param {string} [level] of its variant */
const refusing = (name, level = "") =>
  runtime({
    create: (/** @type {any} */ model, /** @type {any} */ options) => {
      const found = new TextDecoder().decode(model);
      if (found === name && (!level || options.graphOptimizationLevel === level)) throw new Error("no kernel for it");
    },
  });

describe("a bundle of several components", () => {
  it("opens all of them on one runtime, and each is a member", async () => {
    const { load, ort, asked } = bundleOf();
    /** @type {any[]} */
    const events = [];
    const bundle = await load({ onProgress: (/** @type {any} */ event) => events.push(event) });
    assert.deepEqual(Object.keys(bundle.report), ["detect", "read"]);
    assert.equal(bundle.detect.name, "detect-net");
    assert.deepEqual([...(await bundle.read.run(X)).y.data], [1, 1]);
    assert.equal(ort.created.length, 2);
    assert.equal(asked.filter((url) => url.startsWith("vendor/ort-")).length, 1);
    assert.equal(asked.filter((url) => url === "vendor/ort.wasm#0").length, 1);
    const { loaded, total } = events.at(-1);
    assert.equal(loaded, total);
    assert.equal(total, "module".length + "binary".length + "detect".length + "read".length);
  });

  it("opens only what was asked for, and says so of the others", async () => {
    const { load, ort, asked } = bundleOf();
    const bundle = await load({ only: ["read"] });
    assert.equal(ort.created.length, 1);
    assert.ok(!asked.includes(`${DETECT}#0`));
    await assert.rejects(bundle.detect.run(X), { name: "InputError", message: /detect was not loaded/ });
    await assert.rejects(load({ only: ["find"] }), { name: "InputError", hint: "the components are detect, read" });
    await assert.rejects(load({ variants: { read: "gpu" } }), { name: "InputError" });
  });

  it("opens each at its first use, once, where it is lazy", async () => {
    const { load, ort } = bundleOf();
    const bundle = await load({ lazy: true });
    assert.equal(ort.created.length, 0);
    assert.deepEqual(bundle.report, {});
    await Promise.all([bundle.read.run(X), bundle.read.run(X)]);
    assert.equal(ort.created.length, 1);
    assert.deepEqual(Object.keys(bundle.report), ["read"]);
  });

  it("closes all of them, and refuses to run from then on", async () => {
    const { load, ort } = bundleOf();
    const bundle = await load();
    await bundle.close();
    await bundle.close();
    assert.equal(ort.released, 2);
    await assert.rejects(bundle.detect.run(X), { name: "DisposedError", message: "this bundle was closed" });
    await assert.rejects(bundle.selfTest(), { name: "DisposedError" });
  });

  it("that is closed while a component opens lets go of it", async () => {
    const { load, ort } = bundleOf();
    const bundle = await load({ lazy: true });
    const running = assert.rejects(bundle.read.run(X), { name: "DisposedError" });
    await bundle.close();
    await running;
    assert.equal(ort.released, ort.created.length);
  });

  it("closes the others when one cannot run, and names it", async () => {
    const { load, ort } = bundleOf({}, { ort: refusing("detect") });
    await assert.rejects(load(), { name: "IncompatibleError", message: /^detect: no variant/, why: /no kernel for it/ });
    assert.equal(ort.released, ort.created.length - 1);
    assert.deepEqual(Object.keys((await load({ only: ["read"] })).report), ["read"]);
  });

  it("names the component whose file was altered", async () => {
    const { load, ort } = bundleOf({}, { files: { [`${DETECT}#0`]: () => bytesOf("DETECT") } });
    await assert.rejects(load(), { name: "IntegrityError", message: /^detect: payload\/models\/detect/ });
    assert.equal(ort.released, ort.created.length);
  });

  it("says of each component which variants can run", async () => {
    const state = [{ name: "wasm", available: true, reason: "" }];
    assert.deepEqual(await bundleOf().probe(), { detect: state, read: state });
  });
});

describe("components that belong together", () => {
  const together = { together: ["detect", "read"] };

  it("run on the variant of one name, or the next", async () => {
    const levels = runtime({
      create: (/** @type {any} */ model) => {
        if (new TextDecoder().decode(model) === "read" && levels.created.length <= 2) throw new Error("no kernel for it");
      },
    });
    const { load } = bundleOf(together, { ort: levels }, ["fast", "plain"]);
    const bundle = await load();
    assert.equal(bundle.report.detect.variant, "plain");
    assert.equal(bundle.report.read.variant, "plain");
    assert.match(bundle.report.detect.rejected.fast, /^read: .*no kernel for it/);
    assert.ok(bundle.report.read.fellBack);
    assert.equal(levels.released, 1);
  });

  it("are none where one cannot run", async () => {
    const { load, ort } = bundleOf(together, { ort: refusing("read") }, ["fast", "plain"]);
    await assert.rejects(load(), { name: "IncompatibleError", why: /fast: read: .*plain: read: / });
    assert.equal(ort.released, 2);
    await assert.rejects(load({ strict: true }), { name: "FallbackError" });
  });
});
