/**
 * @file One instance of onnxruntime-web: a module, its WebAssembly memory, its threads and its GPU device.
 *
 * The runtime's settings are global to such an instance, it opens one session at a time, and its asynchronous builds
 * stand only one call at a time. An abort or a lost device leaves the whole instance unusable: the next load takes a
 * fresh one. What is known of an instance is kept on the instance itself, for two packages may share one file.
 */

import { DeviceLostError, OutOfMemoryError } from "./errors.js";

const STATE = Symbol.for("bundler.onnxruntime-web");

/**
 * @typedef {object} Instance
 * @property {any} ort the exports of the runtime's module
 * @property {number} threads as the first load set them
 * @property {boolean} started
 * @property {Promise<unknown>} queue
 * @property {import("./errors.js").BundleError | null} dead
 * @property {((error: unknown) => void) | null} fail rejects the call that is under way
 * @property {GPUDevice | null} device
 */

/** @type {Map<string, number>} how many instances of a module have died */
const generations = new Map();

/** @param {string} module */
export const isLoaded = (module) => generations.has(module);

/**
 * The living instance of a module.
 *
 * @param {string} module path of the runtime's module in the bundle
 * @param {import("./download.js").Downloads} downloads
 * @returns {Promise<Instance>}
 */
export async function openInstance(module, downloads) {
  for (let generation = generations.get(module) ?? 0; ; generation++) {
    const exports = /** @type {any} */ (await downloads.importModule(module, generation));
    generations.set(module, generation);
    const ort = exports.env ? exports : exports.default;
    const instance = /** @type {Instance} */ (ort.env[STATE] ?? makeInstance(ort));
    if (!instance.dead) return instance;
  }
}

/**
 * @param {any} ort
 * @returns {Instance}
 */
function makeInstance(ort) {
  /** @type {Instance} */
  const instance = {
    ort,
    threads: 1,
    started: false,
    queue: Promise.resolve(),
    dead: null,
    fail: null,
    device: null,
  };
  Object.defineProperty(ort.env, STATE, { value: instance });
  return instance;
}

/**
 * The WebAssembly settings, which only the first session of an instance can make.
 *
 * @param {Instance} instance
 * @param {Uint8Array} binary
 * @param {number} threads
 */
export function configure(instance, binary, threads) {
  if (instance.started) return;
  const { env } = instance.ort;
  env.wasm.wasmBinary = binary;
  env.wasm.numThreads = instance.threads = threads;
  env.wasm.proxy = false;
  env.logLevel = "error";
}

/**
 * Do `task` when all earlier ones are done. It fails at once when the instance dies, for a call into a dead one may
 * never come back.
 *
 * @template T
 * @param {Instance} instance
 * @param {() => Promise<T>} task
 * @returns {Promise<T>}
 */
export function enqueue(instance, task) {
  const turn = instance.queue.then(
    () =>
      /** @type {Promise<T>} */ (
        new Promise((resolve, reject) => {
          if (instance.dead) throw instance.dead;
          instance.fail = reject;
          task().then(resolve, reject);
        })
      ),
  );
  instance.queue = turn.then(ignore, ignore);
  return turn;
}

const ignore = () => {};

/**
 * @param {Instance} instance
 * @param {import("./errors.js").BundleError} error
 */
function kill(instance, error) {
  instance.dead ??= error;
  instance.fail?.(instance.dead);
}

/**
 * Once the runtime has its GPU device, notice when the browser takes it away.
 *
 * @param {Instance} instance
 */
export async function watchDevice(instance) {
  const device = /** @type {GPUDevice | undefined} */ (await instance.ort.env.webgpu?.device);
  if (!device || instance.device === device) return;
  instance.device = device;
  device.lost.then(({ reason, message }) => {
    kill(
      instance,
      new DeviceLostError("the GPU device was lost", {
        why: message || reason || "the browser gave no reason",
        hint: "load the model again: it gets a new device",
      }),
    );
  });
}

const NO_MEMORY = /out of memory|bad_alloc|allocation failed|failed to allocate|memory access out of bounds|OOM\b/i;
const ABORTED = /^Aborted\(|memory access out of bounds|unreachable|table index is out of bounds/;

/**
 * The error that explains best what the runtime threw; null when it is none of those that are known.
 *
 * @param {Instance} instance
 * @param {unknown} cause
 * @returns {import("./errors.js").BundleError | null}
 */
export function recognise(instance, cause) {
  if (instance.dead) return instance.dead;
  const text = cause instanceof Error ? cause.message : String(cause);
  const full = cause instanceof RangeError || NO_MEMORY.test(text) || text.startsWith("Aborted(");
  const error = full ? outOfMemory(text, cause) : null;
  if (error && (ABORTED.test(text) || cause instanceof WebAssembly.RuntimeError)) kill(instance, error);
  return error;
}

/**
 * @param {string} why
 * @param {unknown} cause
 */
export function outOfMemory(why, cause) {
  return new OutOfMemoryError("the model needs more memory than the browser gives", {
    why: firstLine(why),
    hint: "close other pages, give smaller inputs, or dispose of models and outputs that are done with; then load again",
    cause,
  });
}

/** @param {unknown} cause */
export function firstLine(cause) {
  const text = cause instanceof Error ? cause.message : String(cause);
  return text.split("\n", 1)[0].slice(0, 300);
}
