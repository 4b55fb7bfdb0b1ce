/** @file Streams: calls of a model with state, each of which goes on from the state that the one before left. */

import { Downloads } from "./download.js";
import { DisposedError, IncompatibleError, InputError } from "./errors.js";
import { countItems, findElement, viewBytes } from "./signature.js";

/**
 * @typedef {import("./types.js").Stream} AnyStream
 * @typedef {{ type: string, dims: readonly number[], data: import("./types.js").NumericData }} Initial
 */

/**
 * The state stays as the runtime gave it: a tensor in the GPU's memory where the variant has that, else an array, which
 * the next call takes as it is. The tensors of the step before are given back.
 *
 * @implements {AnyStream}
 */
export class Stream {
  #data;
  #platform;
  #run;
  #links;
  /** @type {Record<string, any> | null} by input; null before the first step */
  #state = null;
  /** @type {Record<string, Initial> | null} */
  #initial = null;
  #busy = false;
  #closed = false;

  /**
   * @param {import("./types.js").ComponentData} data
   * @param {import("./types.js").Platform} platform
   * @param {(inputs: import("./types.js").Inputs, options?: import("./types.js").RunOptions) => Promise<import("./types.js").Outputs>} run
   *   leaves outputs where they are
   */
  constructor(data, platform, run) {
    this.#data = data;
    this.#platform = platform;
    this.#run = run;
    this.#links = data.component.state ?? [];
    if (!this.#links.length) throw new InputError("the model has no state", { hint: "call run() of the model itself" });
  }

  /**
   * One step. It returns the outputs that are no state. A step that fails leaves the state as it was.
   *
   * @param {import("./types.js").Inputs} inputs without the state
   * @param {import("./types.js").RunOptions} [options]
   */
  run(inputs, options) {
    return this.#alone(async () => {
      const own = this.#links.find(({ input }) => inputs && Object.hasOwn(inputs, input));
      if (own) {
        const hint = `leave it out; setState({ … }) goes on from another state`;
        throw new InputError(`${JSON.stringify(own.input)} is the stream's own state`, { hint });
      }
      const state = this.#state ?? (await this.#begin());
      const outputs = await this.#run(Object.assign(Object.create(null), inputs, state), options);
      if (this.#closed) {
        disposeAll(outputs);
        throw closed();
      }
      this.#take(outputs);
      return outputs;
    });
  }

  /** A copy of the state, by the names of its inputs. */
  getState() {
    return this.#alone(async () => {
      const state = this.#state ?? (await this.#begin());
      const copies = Object.create(null);
      for (const { input } of this.#links) {
        const { type, dims, getData } = state[input];
        const data = getData ? await state[input].getData() : state[input].data;
        copies[input] = { type, dims: [...dims], data: data.slice() };
      }
      if (this.#closed) throw closed();
      return copies;
    });
  }

  /**
   * Go on from a state that `getState` gave. The next step checks its types and sizes.
   *
   * @param {import("./types.js").StreamState} state
   */
  setState(state) {
    this.#require();
    const copies = Object.create(null);
    for (const { input } of this.#links) {
      if (!Object.hasOwn(state, input)) throw new InputError(`the state ${JSON.stringify(input)} is missing`);
      const { type, dims, data } = state[input];
      copies[input] = { type, dims: [...dims], data: data.slice() };
    }
    this.#replace(copies);
  }

  /** Begin again with the initial state. */
  reset() {
    this.#require();
    this.#replace(null);
  }

  /** Free the state, once a call that is under way has ended. That call and every later one raise `DisposedError`. */
  close() {
    this.#closed = true;
    this.#initial = null;
    if (!this.#busy) this.#replace(null);
  }

  /** @param {import("./types.js").Outputs} outputs of which the state is taken away */
  #take(outputs) {
    const state = Object.create(null);
    for (const { input, output } of this.#links) {
      state[input] = outputs[output];
      delete outputs[output];
    }
    this.#replace(state);
  }

  /** @param {Record<string, any> | null} state */
  #replace(state) {
    if (this.#state) disposeAll(this.#state);
    this.#state = state;
  }

  #require() {
    if (this.#closed) throw closed();
    if (!this.#busy) return;
    throw new InputError("the stream is in use: the call before has not ended", {
      why: "each step goes on from the one before",
      hint: "await it first; for steps side by side, open another stream: stream()",
    });
  }

  /**
   * @template Result
   * @param {() => Promise<Result>} call
   * @returns {Promise<Result>}
   */
  async #alone(call) {
    this.#require();
    this.#busy = true;
    try {
      return await call();
    } finally {
      this.#busy = false;
      if (this.#closed) this.#replace(null);
    }
  }

  async #begin() {
    if (!this.#initial) {
      const values = Object.create(null);
      for (const link of this.#links) values[link.input] = await this.#makeInitial(link);
      if (this.#closed) throw closed();
      this.#initial = values;
    }
    return /** @type {Record<string, any>} */ (this.#initial);
  }

  /**
   * @param {import("./types.js").StateLink} link
   * @returns {Promise<Initial>}
   */
  async #makeInitial(link) {
    const port = this.#data.component.signature.inputs.find(({ name }) => name === link.input);
    const element = port && findElement(port.type);
    const dims = link.shape.length ? link.shape : port?.type.shape?.map((size, axis) => (axis === link.grows ? 0 : size));
    if (!element || !dims?.every((size) => typeof size === "number")) {
      throw new IncompatibleError(`the state ${JSON.stringify(link.input)} is none that onnxruntime-web can begin with`);
    }
    const { type } = element;
    const sizes = /** @type {number[]} */ (dims);
    const items = countItems(type, sizes);
    const bytes = link.initial === "file" ? await this.#read(link.file) : null;
    const width = viewBytes(type, new ArrayBuffer(8), 1).BYTES_PER_ELEMENT;
    if (bytes && bytes.byteLength !== items * width) {
      throw new IncompatibleError(`the initial value ${JSON.stringify(link.file)} is not of shape [${sizes.join(", ")}]`);
    }
    const data = viewBytes(type, bytes ?? new ArrayBuffer(items * width), items);
    if (!bytes && link.value) fill(data, type, link.value);
    return { type, dims: sizes, data };
  }

  /** @param {string} path of a file that is checked as every other is */
  async #read(path) {
    const [data, platform] = [this.#data, this.#platform];
    const downloads = new Downloads({ data, platform, openShelf: async () => null, signal: undefined, onProgress: undefined });
    return (await downloads.fetch(`payload/${path}`)).slice().buffer;
  }
}

const closed = () => new DisposedError("the stream is closed", { hint: "open another: stream()" });

/** @param {Record<string, any>} tensors */
function disposeAll(tensors) {
  for (const tensor of Object.values(tensors)) tensor.dispose?.();
}

/**
 * @param {any} data
 * @param {string} type the runtime's name
 * @param {number} value
 */
function fill(data, type, value) {
  if (type === "float16" && data instanceof Uint16Array) {
    throw new IncompatibleError("the stream's initial state is of half precision, which this browser has no array for", {
      hint: "use a newer browser",
    });
  }
  if (type === "int4" || type === "uint4") data.fill((value & 15) * 17); // Two elements to a byte.
  else data.fill(data instanceof BigInt64Array || data instanceof BigUint64Array ? BigInt(value) : value);
}
