// The untouched model in a plain session of the same runtime, opened as the runtime's documentation shows.
import { offer } from "./contenders.js";
import { readSample } from "./sample.js";

/** @typedef {{url: string}} Part */

/** What the runtime calls the element types that our golden sets name otherwise. */
const TYPES = /** @type {Record<string, string>} */ ({ str: "string" });

offer(async ({ variant, build, model }) => {
  const { assets, builds, config } = await import(/** @type {string} */ ("/runtime.js"));
  const { module, binary } = builds[build];
  const runtime = await import(assets[module]?.parts[0].url ?? new URL(`/${module}`, location.href).href);
  await placeBinary(runtime, assets[binary]?.parts ?? [{ url: `/${binary}` }]);
  const provider = config.variants.find((/** @type {{name: string}} */ { name }) => name === variant).providers[0].name;
  const feeds = makeFeeds(runtime, await readSample());
  const address = new URL(model, import.meta.url).href;
  /** @type {any} */
  let session;
  return {
    build: () => build,
    async open() {
      session = await runtime.InferenceSession.create(address, { executionProviders: [provider] });
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
 * Where the runtime finds its WebAssembly file: by its address, or as a whole where it is shipped in parts.
 * @param {any} runtime
 * @param {Part[]} parts
 */
async function placeBinary(runtime, parts) {
  if (parts.length === 1) {
    runtime.env.wasm.wasmPaths = { wasm: new URL(parts[0].url, location.href).href };
    return;
  }
  const blobs = await Promise.all(parts.map(async ({ url }) => (await fetch(url)).blob()));
  runtime.env.wasm.wasmBinary = await new Blob(blobs).arrayBuffer();
}

/**
 * @param {any} runtime
 * @param {Record<string, {type: string, data: any, dims: number[]}>} sample
 */
function makeFeeds(runtime, sample) {
  const entries = Object.entries(sample);
  return Object.fromEntries(
    entries.map(([name, { type, data, dims }]) => [name, new runtime.Tensor(TYPES[type] ?? type, data, dims)]),
  );
}
