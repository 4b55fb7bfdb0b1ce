// The imports of the package besides the whole: each must open a variant that it has, and answer as the whole does.
import { openMember, probeMember } from "./members.js";
import { readSample } from "./sample.js";

/** @typedef {import("./channel.js").Pair} Pair */

/** Float32 results of one build are equal; another build of the runtime rounds otherwise. */
const CLOSE = 1e-2;

/** @returns {Promise<[string, string][]>} names and modules, as `package.json` has them; none of an older bundle */
async function listEntries() {
  const answer = await fetch("/package.json");
  const { exports = {} } = answer.ok ? await answer.json() : {};
  return Object.entries(exports).flatMap(([name, { default: module }]) =>
    module?.startsWith("./variants/") ? [[name, module.slice(1)]] : [],
  );
}

/**
 * Open `pair` through every import that has it, and run one sample; on a software adapter, which compiles all shaders
 * anew for minutes, it is only opened.
 *
 * @param {Pair} pair
 * @param {{run: (inputs: any) => Promise<any>, report: any}} whole the same variant, opened by the package's name
 * @returns {Promise<string[]>} what is wrong
 */
export async function findFaultyEntries(pair, whole) {
  const entries = await listEntries();
  const slow = whole.report.softwareAdapter === true;
  const inputs = slow ? null : await readSample(pair.component).catch(() => null);
  const expected = entries.length && inputs ? await readAll(await whole.run(inputs)) : null;
  const faults = [];
  for (const [name, module] of entries) {
    const entry = await import(module);
    if (!(await probeMember(entry, pair))?.available) continue; // Not in this import, or its build cannot run here.
    const found = await tryEntry(entry, pair, expected && { inputs, expected }).catch((error) => String(error.message));
    if (found) faults.push(`import ${name}: ${found}`);
  }
  return faults;
}

/**
 * @param {any} entry
 * @param {Pair} pair
 * @param {{inputs: any, expected: Record<string, any>} | null} sample
 */
async function tryEntry(entry, pair, sample) {
  const model = await openMember(entry, pair, { cache: false });
  try {
    if (model.report.variant !== pair.variant) return `variant ${model.report.variant} was opened in its place`;
    const found = sample ? await readAll(await model.run(sample.inputs)) : {};
    const names = Object.keys(found).filter((name) => !isAlike(found[name], sample?.expected[name]));
    return names.length ? `other outputs than the whole package's: ${names.join(", ")}` : "";
  } finally {
    await model.close();
  }
}

/** @param {Record<string, any>} outputs */
async function readAll(outputs) {
  const read = Object.entries(outputs).map(async ([name, tensor]) => {
    const data = await tensor.getData();
    return /** @type {const} */ ([name, { type: tensor.type, dims: [...tensor.dims], data }]);
  });
  return Object.assign(Object.create(null), Object.fromEntries(await Promise.all(read)));
}

/**
 * @param {{type: string, dims: number[], data: ArrayLike<any>}} found
 * @param {{type: string, dims: number[], data: ArrayLike<any>} | undefined} expected
 */
function isAlike(found, expected) {
  if (!expected || found.type !== expected.type || found.dims.length !== expected.dims.length) return false;
  if (!/^float(32|64)$/.test(found.type)) return true; // A rounded difference may turn an integer.
  const sizes = Array.from(expected.data, Number).filter(Number.isFinite).map(Math.abs);
  const most = CLOSE * sizes.reduce((peak, size) => Math.max(peak, size), 0) + 1e-6;
  if (found.data.length !== expected.data.length) return true; // Its size depends on the data.
  return Array.from(found.data, Number).every((value, index) => !(Math.abs(value - expected.data[index]) > most));
}
