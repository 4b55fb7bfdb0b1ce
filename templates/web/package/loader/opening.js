/** @file Opens one variant: its files, the settings of the runtime, the session, and a report. */

import { describeAdapter } from "./capabilities.js";
import { IncompatibleError } from "./errors.js";
import { createSession, enqueue, isStarted, leaveDevice, openInstance, recognise } from "./ort.js";
import { makeOptions } from "./session.js";
import { findElement } from "./signature.js";

/**
 * @typedef {object} Opened
 * @property {import("./types.js").Variant} variant
 * @property {import("./ort.js").Instance} instance
 * @property {any} session
 * @property {GPUDevice | null} gpu the device that it runs on
 * @property {string | null} device where outputs stay
 * @property {boolean} captured whether the device replays a recorded graph
 * @property {import("./types.js").Report} report
 * @property {(before?: () => Promise<void>) => Promise<void>} release does what is to be done `before` in its turn, too
 */

/**
 * @param {import("./variants.js").Request} request
 * @param {import("./types.js").Variant} variant
 * @param {import("./variants.js").Survey} survey
 * @returns {Promise<Opened>}
 */
export async function openVariant(request, variant, survey) {
  const { data, platform, downloads } = request;
  const { module, binary } = data.builds[survey.build];
  const begun = platform.now();
  const paths = variant.files.map((file) => `payload/${file.path}`);
  const started = isStarted(module);
  downloads.expect(started ? paths : [module, binary, ...paths]);
  const several = !started && platform.isolated && countThreads(platform, variant, request.options.threads) > 1;
  const [threaded, instance, early, ...files] = await Promise.all([
    several ? platform.canStartThreads() : true,
    openInstance(module, downloads),
    started ? null : downloads.fetch(binary),
    ...paths.map((path) => downloads.fetch(path)),
  ]);
  const code = early ?? (instance.started ? null : await downloads.fetch(binary)); // The instance may have died meanwhile.
  const downloaded = platform.now();
  downloads.tell("open", variant.model, false);
  const plan = planSession(request, variant, instance, survey, threaded);
  const { session, gpu } = await openSession(request, { variant, instance, code, files, plan, survey });
  const seconds = { download: (downloaded - begun) / 1000, open: (platform.now() - downloaded) / 1000 };
  return {
    variant,
    instance,
    session,
    gpu,
    device: plan.device,
    captured: plan.captured,
    report: describe(request, variant, survey, instance, plan.notes, seconds),
    release: makeRelease(instance, session, gpu),
  };
}

/**
 * A separate function, so that its closure holds no file.
 *
 * @param {import("./ort.js").Instance} instance
 * @param {any} session
 * @param {GPUDevice | null} gpu
 */
function makeRelease(instance, session, gpu) {
  return (/** @type {(() => Promise<void>) | undefined} */ before) =>
    enqueue(instance, gpu, async () => {
      await before?.();
      leaveDevice(instance, gpu);
      await session.release();
    });
}

/**
 * @typedef {object} Plan
 * @property {number} threads
 * @property {string | null} device
 * @property {boolean} captured
 * @property {string[]} notes
 */

/**
 * @param {import("./variants.js").Request} request
 * @param {import("./types.js").Variant} variant
 * @param {import("./ort.js").Instance} instance
 * @param {import("./variants.js").Survey} survey
 * @param {boolean} threaded whether the page lets the runtime start threads
 * @returns {Plan}
 */
function planSession({ data, platform, options }, variant, instance, survey, threaded) {
  const version = instance.ort.env.versions?.web;
  if (version !== variant.requires.runtime) {
    throw new IncompatibleError(`it was built for onnxruntime-web ${variant.requires.runtime}; found ${version}`);
  }
  /** @type {string[]} */
  const notes = [];
  const captured = canCapture(data, variant, notes);
  const threads = threaded ? chooseThreads(platform, variant, options.threads, notes) : 1;
  if (!threaded) notes.push(FORBIDDEN);
  if (instance.started && instance.threads !== threads) {
    notes.push(`the runtime is already running with ${instance.threads} threads, and keeps them`);
  }
  if (survey.software) notes.push("the GPU is emulated in software: slow, for tests only");
  return { threads, device: chooseDevice(variant, options.keepOnDevice, captured, notes), captured, notes };
}

const PLACES = /** @type {Record<string, string>} */ ({ webgpu: "gpu-buffer", webnn: "ml-tensor" });

/**
 * @param {import("./types.js").Variant} variant
 * @param {boolean | undefined} keep
 * @param {boolean} captured
 * @param {string[]} notes
 */
function chooseDevice(variant, keep, captured, notes) {
  const [first] = variant.providers;
  const possible = first.device ?? PLACES[first.name] ?? null;
  if (keep && !possible) notes.push(`outputs cannot stay on a device: ${first.name} computes in the CPU's memory`);
  if (keep === false && captured) notes.push("outputs stay on the GPU because its graph is captured");
  return captured || keep ? possible : keep === false ? null : first.device;
}

/**
 * The device replays the commands of the first run: only with the same sizes.
 *
 * @param {import("./types.js").ComponentData} data
 * @param {import("./types.js").Variant} variant
 * @param {string[]} notes
 */
function canCapture({ component }, variant, notes) {
  if (!variant.session.enable_graph_capture) return false;
  const { inputs, outputs } = component.signature;
  const loose = [...inputs, ...outputs].find((port) => !port.type.shape?.every((size) => typeof size === "number"));
  if (!loose) return true;
  notes.push(`the graph is not captured: ${JSON.stringify(loose.name)} has no fixed shape`);
  return false;
}

/**
 * @param {import("./types.js").Platform} platform
 * @param {import("./types.js").Variant} variant
 * @param {number | undefined} asked
 * @param {string[]} notes
 */
function chooseThreads(platform, variant, asked, notes) {
  if (platform.isolated) return countThreads(platform, variant, asked);
  const set = askThreads(variant, asked);
  const wanted = set ? set > 1 : variant.providers[0].name === "wasm";
  if (wanted) notes.push(ONE_THREAD[platform.name]);
  return 1;
}

/**
 * @param {import("./types.js").Platform} platform
 * @param {import("./types.js").Variant} variant
 * @param {number | undefined} asked
 */
function countThreads(platform, variant, asked) {
  return askThreads(variant, asked) || (variant.providers[0].name === "wasm" ? platform.threads : 1);
}

/**
 * @param {import("./types.js").Variant} variant
 * @param {number | undefined} asked
 */
function askThreads(variant, asked) {
  return asked ?? /** @type {number | undefined} */ (variant.session.intra_op_num_threads);
}

const FORBIDDEN = "one thread only: the page's security policy forbids its workers; it needs worker-src blob:";

const ONE_THREAD = {
  browser:
    "one thread only: the page is not cross-origin isolated; serve it with the headers " +
    "Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp",
  node: "one thread only: the web runtime supports no more under Node.js",
};

/**
 * @typedef {object} Parts
 * @property {import("./types.js").Variant} variant
 * @property {import("./ort.js").Instance} instance
 * @property {Uint8Array | null} code
 * @property {Uint8Array[]} files
 * @property {Plan} plan
 * @property {import("./variants.js").Survey} survey
 */

/**
 * @param {import("./variants.js").Request} request
 * @param {Parts} parts
 */
async function openSession({ data, options }, { variant, instance, code, files, plan, survey }) {
  const outputs = data.component.signature.outputs.filter((port) => findElement(port.type));
  const at = variant.files.findIndex((file) => file.path === variant.model);
  const folder = variant.model.slice(0, variant.model.lastIndexOf("/") + 1);
  const beside = variant.files
    .map((file, index) => ({ path: file.path.slice(folder.length), data: files[index] }))
    .filter((_, index) => index !== at);
  const adjusted = plan.captured
    ? variant
    : { ...variant, session: { ...variant.session, enable_graph_capture: false } };
  const settings = { code, threads: plan.threads, adapter: survey.adapter };
  try {
    return await enqueue(instance, null, async () => {
      options.signal?.throwIfAborted();
      return createSession(instance, settings, files[at], makeOptions(adjusted, outputs, plan.device, beside, data.component.state));
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw (await recognise(instance, null, error)) ?? error;
  }
}

/**
 * @param {import("./variants.js").Request} request
 * @param {import("./types.js").Variant} variant
 * @param {import("./variants.js").Survey} survey
 * @param {import("./ort.js").Instance} instance
 * @param {string[]} notes
 * @param {import("./types.js").Report["seconds"]} seconds
 * @returns {import("./types.js").Report}
 */
function describe({ data, platform, downloads }, variant, survey, instance, notes, seconds) {
  const absent = data.component.signature.outputs.filter((port) => !findElement(port.type));
  return {
    variant: variant.name,
    providers: variant.providers.map((provider) => provider.name),
    build: survey.build,
    threads: instance.ort.env.wasm.numThreads,
    crossOriginIsolated: platform.isolated,
    softwareAdapter: survey.software ?? null,
    adapter: survey.adapter && describeAdapter(survey.adapter),
    rejected: {},
    fellBack: false,
    notes: [...notes, ...absent.map((port) => `onnxruntime-web does not return the output ${JSON.stringify(port.name)}`)],
    fromCache: downloads.allCached,
    seconds,
  };
}
