// What an application calls, `run` and the streams of a model with state, beside the model that the self-test ran.
import { readSamples } from "./sample.js";

/** Steps of a stream that are called: a state that was saved and left is then none that a stream begins with. */
const MOST_STEPS = 3;

/** Threads share the work otherwise from call to call, and a GPU may add in another order, in half precision. */
const [EXACT, ROUGH] = [1e-5, 1e-3];

/** Bytes of outputs that one message brings to the server. */
const MOST_BYTES = 32_000_000;

/** Bytes that one call of `String.fromCharCode` takes. */
const CHUNK = 0x8000;

/** @typedef {import("./sample.js").Values} Values */

/**
 * @typedef {object} Calls what is given and what comes of it, call by call
 * @property {any} component
 * @property {Values[]} inputs
 * @property {Values[]} outputs of the model itself; where it has state, that of one call is passed to the next by hand
 * @property {number} rounding that calls may differ by, as a share of the greatest magnitude
 */

/**
 * @param {import("./members.js").Member} member
 * @param {string} name of its component
 * @returns {Promise<Calls>}
 * @throws where it is another component
 */
export async function recordCalls({ model, report }, name) {
  const { component, samples } = await readSamples(name, MOST_STEPS);
  return model.testWith(async (/** @type {any} */ own, /** @type {any} */ { component: { name: opened, model_digest } }) => {
    if (opened !== name || model_digest !== component.model_digest) throw new Error(`another component was opened: ${opened}`);
    const inputs = hasStreams(component) ? samples : samples.slice(0, 1);
    const outputs = [];
    let state = {};
    for (const given of inputs) {
      const found = await read(await own.run({ ...given, ...state }));
      state = Object.fromEntries(listLinks(component).map(({ input, output }) => [input, found[output]]));
      outputs.push(found);
    }
    return { component, inputs, outputs, rounding: report.providers.every((/** @type {string} */ one) => one === "wasm") ? EXACT : ROUGH };
  });
}

/**
 * The outputs of the first sample, for the server to compare: numbers as their bytes in base64.
 *
 * @param {Calls} calls
 * @returns {Record<string, {type: string, dims: readonly number[], data: unknown}> | null} null where they are too many
 */
export function encodeOutputs({ outputs: [first] }) {
  const values = Object.entries(first);
  if (values.reduce((sum, [, { data }]) => sum + (data.byteLength ?? 0), 0) > MOST_BYTES) return null;
  return Object.fromEntries(values.map(([name, { type, dims, data }]) => [name, { type, dims, data: encode(data) }]));
}

/** @param {any} data a typed array, or texts */
function encode(data) {
  if (Array.isArray(data)) return data;
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  let text = "";
  for (let at = 0; at < bytes.length; at += CHUNK) text += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(text);
}

/**
 * How what an application holds answers otherwise than the model.
 *
 * @param {any} model
 * @param {Calls} calls
 * @returns {Promise<string[]>} the first fault; none where there is none
 */
export async function findFaultyCalls(model, calls) {
  const { inputs, outputs } = calls.component.signature;
  if (!isSame([model.inputs, model.outputs], [inputs, outputs])) return ["inputs and outputs are others than the model's"];
  const fault = await findDifference(calls, model.run(calls.inputs[0]), 0, "run");
  return [fault || (hasStreams(calls.component) ? await findFaultyStream(model, calls) : "")].filter(Boolean);
}

/**
 * Two streams at once, of which one is set back to a state that it had, and begins again.
 *
 * @param {any} model
 * @param {Calls} calls
 * @returns {Promise<string>}
 */
async function findFaultyStream(model, calls) {
  const states = listLinks(calls.component).map(({ input }) => input);
  const inputs = calls.inputs.map((given) => omit(given, states));
  const [middle, last] = [Math.floor(inputs.length / 2), inputs.length - 1];
  const [first, second] = [model.stream(), model.stream()];
  try {
    let saved;
    for (const [place, given] of inputs.entries()) {
      if (place === middle) saved = await first.getState();
      const found = [findDifference(calls, first.run(given), place, `step ${place + 1} of a stream`)];
      // The first stream has left its initial state.
      if (place === Math.min(1, last)) found.push(findDifference(calls, second.run(inputs[0]), 0, "a second stream's first step"));
      const fault = (await Promise.all(found)).find(Boolean);
      if (fault) return fault;
    }
    first.setState(saved);
    const fault = await findDifference(calls, first.run(inputs[middle]), middle, "a step after its state was restored");
    first.reset();
    return fault || (await findDifference(calls, first.run(inputs[0]), 0, "the first step after a reset"));
  } finally {
    first.close();
    second.close();
  }
}

/** @param {any} component @returns {{input: string, output: string}[]} */
const listLinks = ({ state }) => state ?? [];

/** @param {any} component random steps have no one answer */
const hasStreams = (component) => listLinks(component).length > 0 && !component.unstable_outputs.length;

/**
 * @param {Calls} calls
 * @param {Promise<any>} answer
 * @param {number} place the call that it should answer as
 * @param {string} what was called
 */
async function findDifference({ component, outputs, rounding }, answer, place, what) {
  const states = what === "run" ? [] : listLinks(component).map(({ output }) => output);
  const [found, wanted] = [await read(await answer), omit(outputs[place], states)];
  const [given, names] = [found, wanted].map((values) => Object.keys(values).sort());
  if (!isSame(given, names)) return `${what} gives the outputs ${JSON.stringify(given)} in place of ${JSON.stringify(names)}`;
  const other = names.find((name) => !isAlike(found[name], wanted[name], component.unstable_outputs.includes(name) ? null : rounding));
  return other === undefined ? "" : `${what} gives another ${JSON.stringify(other)} than the model`;
}

/**
 * @param {Record<string, any>} outputs
 * @returns {Promise<Values>} as they are in memory that JavaScript reads
 */
async function read(outputs) {
  const found = [];
  for (const [name, tensor] of Object.entries(outputs)) {
    found.push([name, { type: tensor.type, dims: [...tensor.dims], data: await tensor.getData() }]);
    tensor.dispose();
  }
  return Object.fromEntries(found);
}

/**
 * @param {Values} values
 * @param {string[]} names
 * @returns {Values}
 */
const omit = (values, names) => Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)));

/**
 * @param {any} found
 * @param {any} wanted
 * @param {number | null} rounding null where only types and shapes are the same in each call
 */
function isAlike(found, wanted, rounding) {
  if (found.type !== wanted.type || !isSame(found.dims, wanted.dims)) return false;
  return rounding === null || areClose(found.data, wanted.data, rounding);
}

/**
 * @param {any} found
 * @param {any} wanted
 * @param {number} rounding
 */
function areClose(found, wanted, rounding) {
  const isReal = wanted[Symbol.toStringTag]?.startsWith("Float") === true;
  let most = 0;
  if (isReal) for (const value of wanted) if (Number.isFinite(value)) most = Math.max(most, Math.abs(value));
  const isClose = (/** @type {any} */ one, /** @type {any} */ other) =>
    Object.is(one, other) || one === other || (isReal && Number.isFinite(other) && Math.abs(one - other) <= rounding * (10 * Math.abs(other) + most));
  return found.length === wanted.length && found.every((/** @type {any} */ value, /** @type {number} */ at) => isClose(value, wanted[at]));
}

/**
 * @param {any} one
 * @param {any} other
 */
export const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);
