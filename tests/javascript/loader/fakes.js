/** A bundle of three small files, the platform that it is loaded on, and a runtime that adds one to each number. */

import { createHash } from "node:crypto";

/** @typedef {import("../../../templates/web/package/loader/types.js").Platform} Platform */
/** @typedef {import("../../../templates/web/package/loader/types.js").PackageData} PackageData */
/** @typedef {import("../../../templates/web/package/loader/types.js").Variant} Variant */

/** @param {string | Uint8Array} bytes */
export const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** @param {string} text */
export const bytesOf = (text) => new TextEncoder().encode(text);

/**
 * @param {string} path
 * @param {string[]} texts one for each part
 */
export function asset(path, texts) {
  const parts = texts.map((text, index) => ({
    path: `${path}.00${index}`,
    url: `${path}#${index}`,
    size: text.length,
    sha256: digest(text),
  }));
  return { size: texts.join("").length, sha256: digest(texts.join("")), parts };
}

/**
 * @param {string} name
 * @param {object} [type]
 */
export const port = (name, type = {}) => ({
  name,
  optional: false,
  type: { kind: /** @type {const} */ ("tensor"), element_type: "float32", shape: ["batch", 2], ...type },
});

/**
 * @param {string} name
 * @param {Partial<Variant>} [settings]
 * @returns {Variant}
 */
export const variant = (name, settings = {}) => ({
  name,
  model: "models/wasm/model.onnx",
  files: [{ path: "models/wasm/model.onnx", size: 5, sha256: digest("model") }],
  builds: ["wasm"],
  providers: [{ name: "wasm", options: {}, device: null }],
  session: {},
  session_config: {},
  disabled_optimizers: [],
  requires: { systems: ["Emscripten"], machines: ["wasm32"], runtime: "1.30.0" },
  gate: { default: { absolute: 1e-5, relative: 1e-5 }, outputs: {} },
  ...settings,
});

let packages = 0;

/**
 * @param {string} name
 * @param {object} [settings]
 */
export const componentOf = (name, settings = {}) => ({
  name,
  model: "adder",
  signature: { inputs: [port("x")], outputs: [port("y")] },
  variants: [variant("wasm")],
  golden: "golden",
  unstable_outputs: [],
  preprocessing: null,
  ...settings,
});

/**
 * @param {Variant[]} [variants]
 * @param {object} [component] changes of it
 * @param {object} [config] changes of that
 * @returns {PackageData}
 */
export function packageOf(variants = [variant("wasm")], component = {}, config = {}) {
  const module = `vendor/ort-${(packages += 1)}.mjs`; // Each its own: a page knows a module by its address and digest.
  return {
    config: {
      schema: 4,
      name: "adder",
      target: "web-wasm",
      components: [componentOf("model", { variants, ...component })],
      fallback: "report",
      together: [],
      ...config,
    },
    assets: {
      [module]: asset(module, ["module"]),
      "vendor/ort.wasm": asset("vendor/ort.wasm", ["bin", "ary"]),
      "payload/models/wasm/model.onnx": asset("payload/models/wasm/model.onnx", ["model"]),
    },
    builds: { wasm: { module, binary: "vendor/ort.wasm" } },
    identity: { package: "adder", version: "1.2.3", config_sha256: "" },
    imports: { name: "adder", whole: "adder", variants: {} },
    kept: ["module", "bin", "ary", "model"].map(digest),
  };
}

export class Tensor {
  /**
   * @param {string} type
   * @param {any} data
   * @param {number[]} dims
   * @param {string} [location]
   */
  constructor(type, data, dims, location = "cpu") {
    Object.assign(this, { type, data, dims });
    this.location = location;
  }

  async getData() {
    return /** @type {any} */ (this).data;
  }

  dispose() {
    this.location = "none";
  }
}

/**
 * What the runtime's module exports.
 *
 * @param {{ create?: (model: Uint8Array, options: any) => unknown, run?: (feeds: any) => any, device?: unknown }} [hooks]
 */
export function runtime({ create, run, device } = {}) {
  /** @type {any} */
  const ort = { env: { wasm: {}, webgpu: { device }, versions: { web: "1.30.0" } }, Tensor, created: [], released: 0 };
  const add = (/** @type {any} */ { x }) => ({
    y: new Tensor(
      "float32",
      x.data.map((/** @type {number} */ v) => v + 1),
      x.dims,
    ),
  });
  ort.InferenceSession = {
    create: async (/** @type {Uint8Array} */ model, /** @type {any} */ options) => {
      ort.created.push({ model, options, wasm: { ...ort.env.wasm } });
      await create?.(model, options);
      return {
        inputNames: ["x"],
        run: async (/** @type {any} */ feeds) => (run ?? add)(feeds),
        release: async () => (ort.released += 1),
      };
    },
  };
  return ort;
}

/**
 * A platform whose files are the parts of `data`, as far as `files` does not say otherwise.
 *
 * @param {PackageData} data
 * @param {{ files?: Record<string, (fresh: boolean) => Uint8Array>, modules?: any[], settings?: Partial<Platform> }} [given]
 */
export function platformOf(data, { files = {}, modules = [runtime()], settings = {} } = {}) {
  const contents = /** @type {Record<string, string>} */ ({ "vendor/ort.wasm#0": "bin", "vendor/ort.wasm#1": "ary" });
  contents["payload/models/wasm/model.onnx#0"] = "model";
  for (const { module } of Object.values(data.builds)) contents[`${module}#0`] = "module";
  let imports = 0;
  /** @type {Map<string, Uint8Array>} */
  const shelf = new Map();
  /** @type {string[]} */
  const asked = [];
  /** @type {Platform} */
  const platform = {
    name: "browser",
    threads: 1,
    isolated: false,
    read: async (part, target) => {
      asked.push(part.url);
      target.signal?.throwIfAborted();
      const bytes = files[part.url]?.(target.fresh) ?? bytesOf(contents[part.url]);
      for (const byte of bytes) target.onBytes?.(byte ? 1 : 1);
      if (target.into && bytes.length === target.into.length) target.into.set(bytes);
      return bytes;
    },
    digest: async (bytes) => digest(bytes),
    importModule: async () => modules[imports++],
    canStartThreads: async () => true,
    openShelf: async () => ({
      find: async (sha256) => /** @type {ArrayBuffer | null} */ (shelf.get(sha256)?.slice().buffer ?? null),
      keep: async (sha256, bytes) => void shelf.set(sha256, bytes.slice()),
      tidy: async (known) => [...shelf.keys()].filter((key) => !known.has(key)).forEach((key) => shelf.delete(key)),
    }),
    clearShelf: async () => shelf.clear(),
    now: () => performance.now(),
    ...settings,
  };
  return { platform, asked, shelf, data };
}
