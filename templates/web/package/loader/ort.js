/**
 * @file One instance of onnxruntime-web: a module, its WebAssembly memory, its threads and its GPU device.
 *
 * The runtime's settings are global to such an instance, it opens one session at a time, and its asynchronous builds
 * allow only one call at a time. After an abort or a lost device the whole instance is unusable: the next load uses a
 * new one. The state of an instance is stored on the instance itself, because two packages may share one file.
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
 * @property {{ gpu: GPUDevice | null, reject: (error: unknown) => void } | null} current the call that is under way
 * @property {Map<GPUDevice, number>} users how many models are open on each device
 * @property {WeakMap<GPUDevice, import("./errors.js").BundleError>} lost devices that went while models were open on them
 * @property {boolean} unusable its start failed: open sessions continue, and no more can be opened
 */

/** @type {Map<string, { instance: Instance, generation: number }>} the newest instance of each module */
const newest = new Map();

/** @param {string} module */
export const isLoaded = (module) => newest.has(module);

/** @param {Instance} instance */
const isFit = (instance) => !instance.dead && !instance.unusable;

/**
 * Whether the module's WebAssembly is loaded already, so that no download is required.
 *
 * @param {string} module
 */
export function isStarted(module) {
  const known = newest.get(module)?.instance;
  return known !== undefined && known.started && isFit(known);
}

/**
 * The usable instance of a module.
 *
 * @param {string} module path of the runtime's module in the bundle
 * @param {import("./download.js").Downloads} downloads
 * @returns {Promise<Instance>}
 */
export async function openInstance(module, downloads) {
  for (let generation = newest.get(module)?.generation ?? 0; ; generation++) {
    const exports = /** @type {any} */ (await downloads.importModule(module, generation));
    const ort = exports.env ? exports : exports.default;
    const instance = /** @type {Instance} */ (ort.env[STATE] ?? makeInstance(ort));
    newest.set(module, { instance, generation });
    if (isFit(instance)) return instance;
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
    current: null,
    users: new Map(),
    lost: new WeakMap(),
    unusable: false,
  };
  Object.defineProperty(ort.env, STATE, { value: instance });
  return instance;
}

/**
 * Open a session. The first one of an instance fixes the WebAssembly settings; when it fails, all others would fail,
 * too, and the next load uses a new instance.
 *
 * @param {Instance} instance
 * @param {{ code: Uint8Array | null, threads: number, adapter: GPUAdapter | null }} settings
 * @param {Uint8Array} model
 * @param {Record<string, unknown>} options
 * @returns {Promise<{ session: any, gpu: GPUDevice | null }>}
 */
export async function createSession(instance, { code, threads, adapter }, model, options) {
  const { env, InferenceSession } = instance.ort;
  if (!instance.started) {
    Object.assign(env.wasm, { wasmBinary: code, numThreads: threads, proxy: false });
    if (adapter) env.webgpu.adapter = adapter;
    env.logLevel = "error";
    instance.started = true;
    instance.threads = threads;
  }
  try {
    const session = await InferenceSession.create(model, options);
    return { session, gpu: adapter && (await joinDevice(instance)) };
  } catch (error) {
    instance.unusable ||= NO_BACKEND.test(messageOf(error));
    throw error;
  } finally {
    env.wasm.wasmBinary = undefined; // The code is compiled; the bytes need not stay in memory.
  }
}

/**
 * Run `task` after all earlier ones. It fails at once when the instance dies, because a call into a dead instance may
 * never return.
 *
 * @template T
 * @param {Instance} instance
 * @param {GPUDevice | null} gpu the device that the call needs
 * @param {() => Promise<T>} task
 * @returns {Promise<T>}
 */
export function enqueue(instance, gpu, task) {
  const turn = instance.queue.then(
    () =>
      /** @type {Promise<T>} */ (
        new Promise((resolve, reject) => {
          const fault = findFault(instance, gpu);
          if (fault) throw fault;
          instance.current = { gpu, reject };
          task().then(resolve, reject);
        })
      ),
  );
  instance.queue = turn.then(ignore, ignore);
  return turn;
}

const ignore = () => {};

/**
 * Why nothing can run any more: the instance is dead, or the device is lost.
 *
 * @param {Instance} instance
 * @param {GPUDevice | null} gpu
 */
export function findFault(instance, gpu) {
  return instance.dead ?? (gpu && instance.lost.get(gpu)) ?? null;
}

/**
 * Count a model as a user of the runtime's GPU device, and watch for the loss of that device.
 *
 * @param {Instance} instance
 * @returns {Promise<GPUDevice | null>}
 */
async function joinDevice(instance) {
  const device = /** @type {GPUDevice | undefined} */ (await instance.ort.env.webgpu?.device);
  if (!device) return null;
  const users = instance.users.get(device);
  instance.users.set(device, (users ?? 0) + 1);
  if (users === undefined) device.lost.then((info) => loseDevice(instance, device, info));
  return device;
}

/**
 * Count a model as closed. The runtime destroys its device with its last session, and creates another for the next.
 *
 * @param {Instance} instance
 * @param {GPUDevice | null} gpu
 */
export function leaveDevice(instance, gpu) {
  if (gpu) instance.users.set(gpu, (instance.users.get(gpu) ?? 1) - 1);
}

/**
 * @param {Instance} instance
 * @param {GPUDevice} device
 * @param {GPUDeviceLostInfo} info
 */
function loseDevice(instance, device, { reason, message }) {
  const wanted = instance.users.get(device);
  instance.users.delete(device);
  if (!wanted) return;
  const error = new DeviceLostError("the GPU device was lost", {
    why: message || reason || "the browser gave no reason",
    hint: "load the model again: it gets a new device",
  });
  instance.lost.set(device, error);
  instance.unusable = true; // While a session is open on it, the runtime creates no other device.
  if (instance.current?.gpu === device) instance.current.reject(error);
}

/**
 * @param {Instance} instance
 * @param {import("./errors.js").BundleError} error
 */
function kill(instance, error) {
  instance.dead ??= error;
  instance.current?.reject(instance.dead);
}

const NO_BACKEND = /^no available backend found/;
/** The second to last: a size beyond the 32-bit addresses of WebAssembly. */
const NO_MEMORY = new RegExp(
  "out of memory|bad_alloc|allocation failed|(failed to|could not|cannot) allocate|" +
    "memory access out of bounds|SafeInt\\w*Overflow|OOM\\b",
  "i",
);
const ABORTED = /Aborted\(|memory access out of bounds|table index is out of bounds/;
const UNFIT = /CompileError|LinkError/;
const GRACE = 200; // Milliseconds between a GPU's last failure and the event that the device is lost.

/**
 * The most specific error for what the runtime threw; null when it is unknown.
 *
 * @param {Instance} instance
 * @param {GPUDevice | null} gpu
 * @param {unknown} cause
 * @returns {Promise<import("./errors.js").BundleError | null>}
 */
export async function recognise(instance, gpu, cause) {
  if (gpu) await Promise.race([gpu.lost, new Promise((done) => setTimeout(done, GRACE))]);
  const fault = findFault(instance, gpu);
  if (fault) return fault;
  const text = messageOf(cause);
  const trapped = (cause instanceof WebAssembly.RuntimeError || ABORTED.test(text)) && !UNFIT.test(text);
  const full = cause instanceof RangeError || NO_MEMORY.test(text) || trapped;
  const error = full ? outOfMemory(text, cause) : null;
  if (error && trapped) kill(instance, error);
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
const messageOf = (cause) => (cause instanceof Error ? cause.message : String(cause));

/** @param {unknown} cause */
export const firstLine = (cause) => messageOf(cause).split("\n", 1)[0].slice(0, 300);
