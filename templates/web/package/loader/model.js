/** @file An open model: runs, tests itself, and releases its resources. */

import { DisposedError, DownloadError, InferenceError, InputError } from "./errors.js";
import { makeBinder } from "./inputs.js";
import { enqueue, findFault, firstLine, recognise } from "./ort.js";
import { findElement } from "./signature.js";

/** @type {WeakMap<object, object>} tensors in a device's memory, and the device or the runtime that they belong to */
const owners = new WeakMap();

const SWEEP_AT = 64; // Number of returned tensors after which disposed ones are forgotten.

/** @typedef {import("./types.js").Model} Model */

/** @implements {Model} */
export class BundledModel {
  /** @type {import("./opening.js").Opened | null} */
  #opened;
  #data;
  #platform;
  #bind;
  /** @type {string[]} */
  #names;
  /** @type {Record<string, null>} */
  #fetches = Object.create(null);
  /** @type {Set<any>} */
  #resident = new Set();
  /** @type {Promise<import("./capture.js").CapturedGraph> | null} */
  #capture = null;

  /**
   * @param {import("./types.js").ComponentData} data
   * @param {import("./types.js").Platform} platform
   * @param {import("./opening.js").Opened} opened
   */
  constructor(data, platform, opened) {
    const { inputs, outputs } = data.component.signature;
    const { instance, session } = opened;
    this.name = data.component.model;
    this.version = data.identity.version;
    this.inputs = Object.freeze([...inputs]);
    this.outputs = Object.freeze([...outputs]);
    this.report = opened.report;
    this.preprocessing = data.component.preprocessing;
    this.metadata = Object.freeze({ ...data.component.metadata });
    this.#data = data;
    this.#platform = platform;
    this.#opened = opened;
    this.#names = outputs.filter((port) => findElement(port.type)).map((port) => port.name);
    for (const name of this.#names) this.#fetches[name] = null;
    this.#bind = makeBinder(
      inputs.filter((port) => findElement(port.type)),
      {
        Tensor: instance.ort.Tensor,
        owns: (tensor) => owners.get(tensor) === (opened.gpu ?? instance),
        inputNames: session.inputNames,
      },
      data.component.fixed_sizes,
    );
    if (opened.captured) this.#capture = startCapture(opened, inputs);
    this.#capture?.catch(() => {}); // The first run reports it.
  }

  /**
   * Run once. The arrays that are given must stay as they are until the outputs are there.
   *
   * Raises `InputError`, `OutOfMemoryError`, `DeviceLostError`, `DisposedError` or `InferenceError`.
   *
   * @param {import("./types.js").Inputs} inputs
   * @param {import("./types.js").RunOptions} [options]
   * @returns {Promise<import("./types.js").Outputs>}
   */
  async run(inputs, options) {
    const outputs = await this.runStep(inputs, options);
    if (this.#opened?.device) return outputs;
    for (const { output } of this.#data.component.state ?? []) await outputs[output].getData(); // Stays for streams only.
    return outputs;
  }

  /**
   * A run whose state stays in the device's memory: a step of a stream.
   *
   * @param {import("./types.js").Inputs} inputs
   * @param {import("./types.js").RunOptions} [options]
   * @returns {Promise<import("./types.js").Outputs>}
   */
  async runStep(inputs, { signal } = {}) {
    const opened = this.#open();
    signal?.throwIfAborted();
    const feeds = this.#bind(inputs);
    let results;
    try {
      results = await enqueue(opened.instance, opened.gpu, () => this.#call(feeds, signal));
    } catch (error) {
      throw await this.#explain(opened, error, signal);
    }
    const outputs = this.#collect(opened, results);
    if (signal?.aborted) {
      for (const output of Object.values(outputs)) output.dispose();
      throw signal.reason;
    }
    return outputs;
  }

  /** A stream of calls, each of which goes on from the state of the one before. */
  stream() {
    this.#open();
    return openStream(this.#data, this.#platform, (inputs, options) => this.runStep(inputs, options));
  }

  /**
   * Reproduce the golden set that the bundle carries.
   *
   * @returns {Promise<import("./types.js").SelfTest>}
   */
  async selfTest() {
    this.#open();
    return (await importSelfTest(this.#data))(this);
  }

  /** @param {import("./imports.js").Test} test */
  async testWith(test) {
    this.#open();
    return test(this, this.#data, this.#platform);
  }

  /** Release the session and every output that still lies in a device's memory. */
  async dispose() {
    const opened = this.#opened;
    if (!opened) return;
    this.#opened = null;
    if (findFault(opened.instance, opened.gpu)) return; // Its resources are gone with the device or the instance.
    await opened.release(async () => {
      for (const tensor of this.#resident) tensor.dispose();
      this.#resident.clear();
      (await this.#capture)?.release();
    });
  }

  #open() {
    if (this.#opened) return this.#opened;
    throw new DisposedError("this model was disposed", { hint: "load it again" });
  }

  /**
   * @param {Record<string, any>} feeds
   * @param {AbortSignal | undefined} signal
   */
  async #call(feeds, signal) {
    const { session } = this.#open();
    signal?.throwIfAborted();
    const capture = this.#capture && (await this.#capture);
    const given = capture ? capture.write(feeds) : feeds;
    // The session's own `run` copies names through plain objects, which a name like `__proto__` does not survive.
    const results = await (session.handler?.run ? session.handler : session).run(given, this.#fetches, {});
    return capture ? capture.copy(results) : results;
  }

  /**
   * @param {import("./opening.js").Opened} opened
   * @param {Record<string, any>} results
   * @returns {import("./types.js").Outputs}
   */
  #collect(opened, results) {
    const outputs = Object.create(null);
    for (const name of this.#names) {
      const tensor = results[name];
      outputs[name] = tensor;
      if (tensor.location === "cpu") continue;
      this.#adopt(opened, tensor);
    }
    if (this.#resident.size > SWEEP_AT) this.#sweep();
    return outputs;
  }

  /**
   * A tensor in a device's memory. Once its values were read it serves as one in the CPU's memory, so the device's is
   * given back then: a page that only reads need not know of it.
   *
   * @param {import("./opening.js").Opened} opened
   * @param {any} tensor
   */
  #adopt(opened, tensor) {
    owners.set(tensor, opened.gpu ?? opened.instance);
    this.#resident.add(tensor);
    const read = tensor.getData;
    tensor.getData = async (release = true) => {
      try {
        return await read.call(tensor, release);
      } catch (error) {
        this.#open(); // Disposing of a model disposes of its outputs.
        throw await this.#explain(opened, error, undefined);
      }
    };
  }

  #sweep() {
    for (const tensor of this.#resident) if (!DEVICES.has(tensor.location)) this.#resident.delete(tensor);
  }

  /**
   * @param {import("./opening.js").Opened} opened
   * @param {unknown} cause
   * @param {AbortSignal | undefined} signal
   */
  async #explain(opened, cause, signal) {
    if (cause instanceof DisposedError || (signal?.aborted && cause === signal.reason)) return cause;
    const known = await recognise(opened.instance, opened.gpu, cause);
    if (known) return known;
    const hint = "run the model's selfTest(): if that passes, check the inputs";
    return new InferenceError("the runtime failed", { why: firstLine(cause), hint, cause });
  }
}

/** Not written as one text, which build tools would follow: only who imports the golden set ships it. */
const SELF_TEST = ["..", "self-test.js"].join("/");

/**
 * @param {import("./types.js").PackageData} data
 * @returns {Promise<(model: object) => Promise<any>>}
 */
export async function importSelfTest({ imports }) {
  try {
    return (await import(/* webpackIgnore: true */ /* @vite-ignore */ SELF_TEST)).selfTest;
  } catch (cause) {
    throw new DownloadError("the golden set is not next to this code", {
      why: firstLine(cause),
      hint: `in an application that a build tool made, import { selfTest } from "${imports.whole}/self-test" and call selfTest(model)`,
      cause,
    });
  }
}

/**
 * @param {import("./types.js").ComponentData} data
 * @param {import("./types.js").Platform} platform
 * @param {BundledModel["runStep"]} run
 */
export function openStream(data, platform, run) {
  if (data.Stream) return new data.Stream(data, platform, run);
  throw new InputError("the model has no state", { hint: "call run() of the model itself" });
}

const DEVICES = new Set(["gpu-buffer", "ml-tensor"]);

/**
 * @param {import("./opening.js").Opened} opened
 * @param {import("./types.js").Port[]} inputs
 */
async function startCapture({ instance, gpu }, inputs) {
  const { CapturedGraph } = await import("./capture.js");
  return new CapturedGraph(/** @type {GPUDevice} */ (gpu), instance.ort.Tensor, inputs);
}
