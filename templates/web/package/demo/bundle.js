/** All that this page takes from the bundle, and the types of it: if the loader changes, only this file follows. */

import { assets as recorded } from "../golden.js";
import * as loader from "../index.js";
import { browser } from "../loader/browser.js";
import { openGolden as openRecorded } from "../loader/golden.js";
import * as data from "../runtime.js";

/**
 * @typedef {Float32Array | Float64Array | Int8Array | Uint8Array | Uint8ClampedArray | Int16Array | Uint16Array | Int32Array | Uint32Array
 *   | BigInt64Array | BigUint64Array} NumericData
 * @typedef {NumericData | string[]} Data
 * @typedef {{ type: string, dims: readonly number[], data: Data }} Tensor
 * @typedef {{ data: Data, dims: readonly number[] }} Given
 * @typedef {{ kind: string, element_type?: string | null, shape?: readonly (number | string | null)[] | null,
 *   key_type?: string | null, element?: ValueType | null }} ValueType
 * @typedef {{ name: string, type: ValueType, optional?: boolean }} Port
 * @typedef {{ name: string, providers: readonly { name: string }[], requires: { runtime: string } }} Variant
 * @typedef {{ model: string, target: string, signature: { inputs: Port[], outputs: Port[] }, variants: Variant[],
 *   unstable_outputs?: string[] }} Config
 * @typedef {{ name: string, inputs: Map<string, Tensor>, outputs: Map<string, Tensor> }} Sample
 * @typedef {{ phase: string, file: string | null, loaded: number, total: number, cached: boolean }} Progress
 * @typedef {{ name: string, available: boolean, reason: string, software?: boolean }} Probed
 * @typedef {{ variant: string, providers: string[], build: string, threads: number, crossOriginIsolated: boolean,
 *   softwareAdapter: boolean | null, adapter: string | null, rejected: Record<string, string>, fellBack: boolean,
 *   notes: string[], fromCache: boolean, seconds: { download: number, open: number } }} Report
 * @typedef {{ name: string, equal: boolean | null, max_absolute: number | null, mean_absolute: number | null,
 *   max_relative: number | null, cosine: number | null, sqnr_db: number | null, top1_agreement: number | null, agreement: number | null,
 *   mismatch: string | null }} Figures
 * @typedef {{ passed: boolean, samples: number, synthetic: boolean, faults: string[],
 *   unjudged: Record<string, string>, outputs: Figures[] }} SelfTest
 * @typedef {{ type: string, dims: readonly number[], getData: () => Promise<Data>, dispose: () => void }} RuntimeTensor
 * @typedef {{ report: Report, run: (inputs: Record<string, Given>) => Promise<Record<string, RuntimeTensor>>,
 *   selfTest: () => Promise<SelfTest>, dispose: () => Promise<void> }} Model
 * @typedef {{ variant?: string, onProgress?: (event: Progress) => void }} LoadOptions
 */

const { components, target } = data.config;
const several = components.length > 1;
const asked = new URLSearchParams(location.search).get("component");

/** @type {import("../loader/types.js").Component} */
const component = components.find(({ name }) => name === asked) ?? /** @type {any} */ (components[0]);

/** What the page is about: one component. */
export const config = /** @type {Config} */ (/** @type {unknown} */ ({ ...component, target }));

/** The names of all components, and of the one that is shown; none where there is but one. */
export const choice = several ? { names: components.map(({ name }) => name), chosen: component.name } : null;

export const version = data.identity.version;

/**
 * @param {LoadOptions} options
 * @returns {Promise<Model>}
 */
export async function load(options) {
  const { load: open } = /** @type {any} */ (loader);
  if (!several) return open(options);
  const { name } = component;
  const { variant, ...rest } = options;
  const bundle = await open({ ...rest, only: [name], ...(variant ? { variants: { [name]: variant } } : {}) });
  const member = bundle[name];
  return {
    report: bundle.report[name],
    run: (inputs) => member.run(inputs),
    selfTest: () => member.selfTest(),
    dispose: () => bundle.close(),
  };
}

/** @returns {Promise<Probed[]>} */
export async function probe() {
  const found = /** @type {any} */ (await loader.probe());
  return several ? found[component.name] : found;
}

/** @returns {Promise<void>} */
export function clearCache() {
  return loader.clearCache();
}

/** Bytes of all files that a visitor may be sent, models and runtimes of all variants together. */
export function bundleSize() {
  return Object.values(data.assets).reduce((sum, { size }) => sum + size, 0);
}

/**
 * The recorded samples: the first one at once, the others when they are asked for.
 *
 * @typedef {{ first: Sample | null, synthetic: boolean, count: number, read: (index: number) => Promise<Sample | null> }} Golden
 * @returns {Promise<Golden>}
 */
export async function openGolden() {
  const golden = await openRecorded({ ...data, assets: recorded, component }, browser);
  const read = async (/** @type {number} */ index) => {
    const found = golden.samples[index];
    return found
      ? {
          name: found.name,
          inputs: tensorsOf(await golden.readAll(found.inputs)),
          outputs: tensorsOf(await golden.readAll(found.outputs)),
        }
      : null;
  };
  const count = golden.samples.length;
  return { first: count ? await read(0) : null, synthetic: golden.synthetic, count, read };
}

/**
 * What is no tensor is left out: no editor makes it and no view shows it.
 *
 * @param {Map<string, Tensor | null>} values
 */
function tensorsOf(values) {
  /** @type {Map<string, Tensor>} */
  const tensors = new Map();
  values.forEach((tensor, name) => tensor && tensors.set(name, tensor));
  return tensors;
}
