// The first golden sample, as `run` takes it: tensors by the model's own names.

const ARRAYS = /** @type {Record<string, any>} */ ({
  bool: Uint8Array,
  float32: Float32Array,
  float64: Float64Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  int8: Int8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  uint8: Uint8Array,
  float16: /** @type {any} */ (globalThis).Float16Array ?? Uint16Array,
});

/** @typedef {{kind: string, type: string, shape: number[], file?: string, values?: string[]}} Stored */

/**
 * @param {string} component
 * @returns {Promise<Record<string, {type: string, data: any, dims: number[]}>>}
 * @throws where an input is no tensor of a type that can be made here
 */
export async function readSample(component) {
  const { config } = await import(/** @type {string} */ ("/runtime.js"));
  const { golden } = config.components.find((/** @type {{name: string}} */ { name }) => name === component);
  const folder = new URL(`/payload/${golden}/`, location.href);
  const index = await (await fetch(new URL("index.json", folder))).json();
  const inputs = /** @type {[string, Stored][]} */ (Object.entries(index.samples[0].inputs));
  const read = await Promise.all(inputs.map(async ([name, stored]) => [name, await readTensor(name, stored, folder)]));
  return Object.assign(Object.create(null), Object.fromEntries(read));
}

/**
 * @param {string} name
 * @param {Stored} stored
 * @param {URL} folder
 */
async function readTensor(name, { kind, type, shape, file, values }, folder) {
  if (kind !== "tensor") throw new Error(`input ${JSON.stringify(name)} is a ${kind}, which is not timed`);
  if (values) return { type, data: values, dims: shape };
  const make = ARRAYS[type];
  if (!make) throw new Error(`input ${JSON.stringify(name)} holds ${type}, which is not timed`);
  const bytes = await (await fetch(new URL(/** @type {string} */ (file), folder))).arrayBuffer();
  return { type, data: new make(bytes), dims: shape };
}
