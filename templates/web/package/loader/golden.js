/** @file The golden set: inputs and outputs recorded from the original model. */

import { Downloads } from "./download.js";
import { IntegrityError } from "./errors.js";
import { countItems, findElement, viewBytes } from "./signature.js";

const REBUILD = "build the bundle again";

/**
 * @typedef {{ kind: "none" }
 *   | { kind: "tensor", type: string, shape: number[], file?: string, values?: string[] }
 *   | { kind: "sequence", items: Entry[] }
 *   | { kind: "map", keys: unknown[], values: unknown[] }} Entry
 */

/**
 * The recorded values of one output: the energy of all samples around their mean and that of each sample
 * (in the output's own unit, squared), the greatest magnitude of the quietest sample, whether integers count as numbers, and why nothing can be
 * judged (empty where it can).
 *
 * @typedef {object} Reference
 * @property {string} name
 * @property {number | null} signal
 * @property {number[]} signals
 * @property {number} quiet_peak
 * @property {boolean} quantity
 * @property {string} unjudged
 */

/**
 * @typedef {object} Tensor
 * @property {string} type the runtime's name
 * @property {readonly number[]} dims
 * @property {import("./types.js").TensorData} data
 */

/**
 * @typedef {object} Sample
 * @property {string} name
 * @property {Map<string, Tensor | null>} inputs
 * @property {Map<string, Tensor | null>} outputs null for what the web runtime gives none of
 */

/** The recorded samples, read one at a time. `synthetic` says that the inputs were generated from a seed. */
export class GoldenSet {
  /**
   * @param {Downloads} downloads
   * @param {string} folder where it is in the package
   * @param {{ synthetic: boolean, state?: Record<string, string>, outputs: Reference[], samples: { name: string, inputs: object, outputs: object }[] }} index
   */
  constructor(downloads, folder, index) {
    this.downloads = downloads;
    this.folder = folder;
    this.synthetic = index.synthetic;
    this.samples = index.samples;
    this.state = Object.entries(index.state ?? {}); // Inputs and outputs; none where the samples are apart.
    this.references = new Map(index.outputs.map((reference) => [reference.name, reference]));
  }

  /** @returns {AsyncGenerator<Sample>} */
  async *read() {
    for (const { name, inputs, outputs } of this.samples) {
      yield { name, inputs: await this.readAll(inputs), outputs: await this.readAll(outputs) };
    }
  }

  /** @param {object} entries */
  async readAll(entries) {
    const read = Object.entries(entries).map(
      async ([name, entry]) => /** @type {const} */ ([name, await this.readValue(entry)]),
    );
    return new Map(await Promise.all(read));
  }

  /**
   * @param {Entry} entry
   * @returns {Promise<Tensor | null>}
   */
  async readValue(entry) {
    if (entry.kind !== "tensor") return null;
    const element = findElement({ kind: "tensor", element_type: entry.type, shape: null });
    if (!element) return null;
    const { type } = element;
    if (entry.values) return { type, dims: entry.shape, data: entry.values };
    const bytes = (await this.downloads.fetch(`${this.folder}/${entry.file}`)).slice();
    this.downloads.files.clear(); // The set may be larger than memory.
    const items = countItems(type, entry.shape);
    return { type, dims: entry.shape, data: viewBytes(type, bytes.buffer, items) };
  }
}

/**
 * Raises `DownloadError` or `IntegrityError`.
 *
 * @param {import("./types.js").ComponentData} data
 * @param {import("./types.js").Platform} platform
 */
export async function openGolden(data, platform) {
  const downloads = new Downloads({
    data,
    platform,
    openShelf: async () => null,
    signal: undefined,
    onProgress: undefined,
  });
  const folder = `payload/${data.component.golden}`;
  const text = new TextDecoder().decode(await downloads.fetch(`${folder}/index.json`));
  const golden = readIndex(downloads, folder, text);
  if (!golden.samples?.length) throw new IntegrityError("the golden set has no samples", { hint: REBUILD });
  return golden;
}

/**
 * @param {Downloads} downloads
 * @param {string} folder
 * @param {string} text
 */
function readIndex(downloads, folder, text) {
  try {
    return new GoldenSet(downloads, folder, JSON.parse(text));
  } catch (cause) {
    throw new IntegrityError("the golden set's index cannot be read", { why: String(cause), hint: REBUILD });
  }
}
