// The original model in a plain session of the same runtime, opened as the runtime's documentation shows.
import { findProviders } from "./browser.js";
import { offer } from "./contenders.js";
import { readSamples } from "./sample.js";

offer(async ({ component, variant, build, model }) => {
  const { assets, builds, config } = await import(/** @type {string} */ ("/runtime.js"));
  const module = new URL(`${build}.mjs`, import.meta.url).href;
  const binary = addresses(assets, builds[build].binary);
  const provider = findProviders(config, { component, variant })[0]?.name;
  const [sample] = (await readSamples(component, 1)).samples;
  const address = new URL(model, import.meta.url).href;
  /** @type {any} */
  let session;
  /** @type {any} */
  let feeds;
  return {
    build: () => build,
    async open() {
      const runtime = await import(module);
      await placeBinary(runtime, binary);
      session = await runtime.InferenceSession.create(address, { executionProviders: [provider] });
      feeds = makeFeeds(runtime, sample);
    },
    async call() {
      for (const output of Object.values(await session.run(feeds))) /** @type {any} */ (output).dispose?.();
    },
    async close() {
      await session?.release();
    },
  };
});

/**
 * @param {Record<string, {parts: {url: string}[]}>} assets
 * @param {string} path
 * @returns {string[]} where the parts of a file of the package are
 */
function addresses(assets, path) {
  return (assets[path]?.parts ?? [{ url: `/${path}` }]).map(({ url }) => new URL(url, location.href).href);
}

/**
 * Where the runtime finds its WebAssembly file: by its address, or as a whole where it is shipped in parts.
 * @param {any} runtime
 * @param {string[]} parts
 */
async function placeBinary(runtime, parts) {
  if (parts.length === 1) {
    runtime.env.wasm.wasmPaths = { wasm: parts[0] };
    return;
  }
  const blobs = await Promise.all(parts.map(async (part) => (await fetch(part)).blob()));
  runtime.env.wasm.wasmBinary = await new Blob(blobs).arrayBuffer();
}

/**
 * @param {any} runtime
 * @param {import("./sample.js").Values} sample
 */
function makeFeeds(runtime, sample) {
  const entries = Object.entries(sample);
  return Object.fromEntries(entries.map(([name, { type, data, dims }]) => [name, new runtime.Tensor(type, data, dims)]));
}
