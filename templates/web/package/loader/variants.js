/** @file Which variant runs here, and why the ones before it do not. Nothing falls back in silence. */

import { canRunBuild, describeAdapter, findProvider, findWasmObstacle } from "./capabilities.js";
import {
  BundleError,
  DownloadError,
  FallbackError,
  IncompatibleError,
  IntegrityError,
  OutOfMemoryError,
} from "./errors.js";
import { createSession, enqueue, firstLine, isLoaded, isStarted, openInstance, outOfMemory, recognise } from "./ort.js";
import { makeOptions } from "./session.js";
import { findElement, usesHalf } from "./signature.js";

const SYSTEM = "Emscripten";

/**
 * @typedef {object} Request
 * @property {import("./types.js").PackageData} data
 * @property {import("./types.js").Platform} platform
 * @property {import("./download.js").Downloads} downloads
 * @property {import("./types.js").LoadOptions} options
 * @property {import("./types.js").Variant[]} variants
 */

/**
 * @typedef {object} Opened
 * @property {import("./types.js").Variant} variant
 * @property {import("./ort.js").Instance} instance
 * @property {any} session
 * @property {string | null} device where outputs stay
 * @property {boolean} captured whether the device replays a recorded graph
 * @property {import("./types.js").Report} report
 * @property {() => Promise<void>} release
 */

/**
 * @typedef {object} Survey
 * @property {string} reason why a variant cannot run here, as far as can be said without opening it
 * @property {string} build
 * @property {GPUAdapter | null} adapter
 * @property {boolean | undefined} software
 */

/**
 * Open the first variant that can run here.
 *
 * Raises `DownloadError` and `IntegrityError`, `FallbackError` when strict and the first cannot run, and
 * `IncompatibleError` when none can.
 *
 * @param {Request} request
 * @returns {Promise<Opened>}
 */
export async function openFirst(request) {
  const strict = request.options.strict ?? request.data.config.fallback === "strict";
  /** @type {Record<string, string>} */
  const rejected = Object.create(null);
  let last = null;
  for (const variant of request.variants) {
    const survey = await findObstacle(request.data, variant);
    try {
      if (survey.reason) throw new IncompatibleError(survey.reason);
      const opened = await open(request, variant, survey);
      return Object.assign(opened, {
        report: { ...opened.report, rejected, fellBack: Object.keys(rejected).length > 0 },
      });
    } catch (error) {
      last = explainOpening(error, request.options.signal);
      rejected[variant.name] = last.why ? `${last.message} (${last.why})` : last.message;
    }
    if (strict) break;
  }
  throw refuse(request, rejected, strict, last);
}

/**
 * What stops the whole load is thrown; what stops one variant is answered.
 *
 * @param {unknown} error
 * @param {AbortSignal | undefined} signal
 * @returns {BundleError}
 */
function explainOpening(error, signal) {
  if (signal?.aborted || error instanceof DownloadError || error instanceof IntegrityError) throw error;
  if (error instanceof BundleError) return error;
  if (error instanceof RangeError) return outOfMemory(String(error), error);
  return new IncompatibleError(`the runtime could not open it (${firstLine(error)})`, { cause: error });
}

/**
 * @param {Request} request
 * @param {Record<string, string>} rejected
 * @param {boolean} strict
 * @param {BundleError | null} last
 */
function refuse(request, rejected, strict, last) {
  const why = Object.entries(rejected)
    .map(([name, reason]) => `${name}: ${reason}`)
    .join("; ");
  const details = { why, cause: last ?? undefined };
  if (strict && request.variants.length > 1) {
    return new FallbackError(`variant ${request.variants[0].name} cannot run here, and strict mode takes no other`, {
      ...details,
      hint: "mend the cause, or load the model with strict: false",
    });
  }
  if (last instanceof OutOfMemoryError) return last;
  const hint = "use a newer browser, or build the bundle for one of its other targets";
  return new IncompatibleError("no variant of this model can run here", { ...details, hint });
}

/**
 * @param {import("./types.js").PackageData} data
 * @param {import("./types.js").Variant} variant
 * @returns {Promise<Survey>}
 */
export async function findObstacle(data, variant) {
  const build = chooseBuild(data, variant);
  /** @type {Survey} */
  const survey = {
    reason: findWasmObstacle() || findMisfit(data, variant, build),
    build,
    adapter: null,
    software: undefined,
  };
  if (survey.reason) return survey;
  const { inputs, outputs } = data.config.signature;
  for (const provider of variant.providers) {
    const finding = await findProvider(provider, usesHalf([...inputs, ...outputs]));
    survey.reason ||= finding.reason;
    survey.adapter ??= finding.adapter ?? null;
    survey.software ??= finding.software;
  }
  return survey;
}

/**
 * One that this page has already loaded is better than one that it would have to download.
 *
 * @param {import("./types.js").PackageData} data
 * @param {import("./types.js").Variant} variant
 */
function chooseBuild(data, variant) {
  const fit = variant.builds.filter((build) => Object.hasOwn(data.builds, build) && canRunBuild(build));
  return fit.find((build) => isLoaded(data.builds[build].module)) ?? fit[0] ?? "";
}

/**
 * @param {import("./types.js").PackageData} data
 * @param {import("./types.js").Variant} variant
 * @param {string} build
 */
function findMisfit({ config }, variant, build) {
  const { systems } = variant.requires;
  if (systems.length && !systems.includes(SYSTEM)) return `it is for ${systems.join(" or ")}, this is ${SYSTEM}`;
  if (!build) return `the package has no build of the runtime for it that can run here (${variant.builds.join(", ")})`;
  const strange = config.signature.inputs.find((port) => !findElement(port.type) && !port.optional);
  if (strange) return `onnxruntime-web takes no input like ${JSON.stringify(strange.name)}`;
  return config.signature.outputs.some((port) => findElement(port.type))
    ? ""
    : "onnxruntime-web gives none of its outputs";
}

/**
 * @param {Request} request
 * @param {import("./types.js").Variant} variant
 * @param {Survey} survey
 * @returns {Promise<Opened>}
 */
async function open(request, variant, survey) {
  const { data, platform, downloads } = request;
  const { module, binary } = data.builds[survey.build];
  const begun = platform.now();
  const paths = variant.files.map((file) => `payload/${file.path}`);
  const started = isStarted(module);
  downloads.expect(started ? paths : [module, binary, ...paths]);
  const [instance, early, ...files] = await Promise.all([
    openInstance(module, downloads),
    started ? null : downloads.fetch(binary),
    ...paths.map((path) => downloads.fetch(path)),
  ]);
  const code = early ?? (instance.started ? null : await downloads.fetch(binary)); // It may have died meanwhile.
  const downloaded = platform.now();
  downloads.tell("open", variant.model, false);
  const plan = planSession(request, variant, instance, survey);
  const session = await openSession(request, { variant, instance, code, files, plan, survey });
  const seconds = { download: (downloaded - begun) / 1000, open: (platform.now() - downloaded) / 1000 };
  return {
    variant,
    instance,
    session,
    device: plan.device,
    captured: plan.captured,
    report: describe(request, variant, survey, instance, plan.notes, seconds),
    release: () => enqueue(instance, () => session.release()),
  };
}

/**
 * @typedef {object} Plan
 * @property {number} threads
 * @property {string | null} device
 * @property {boolean} captured
 * @property {string[]} notes
 */

/**
 * @param {Request} request
 * @param {import("./types.js").Variant} variant
 * @param {import("./ort.js").Instance} instance
 * @param {Survey} survey
 * @returns {Plan}
 */
function planSession({ data, platform, options }, variant, instance, survey) {
  const version = instance.ort.env.versions?.web;
  if (version !== variant.requires.runtime) {
    throw new IncompatibleError(`it was made for onnxruntime-web ${variant.requires.runtime}, here is ${version}`);
  }
  /** @type {string[]} */
  const notes = [];
  const captured = canCapture(data, variant, notes);
  const threads = chooseThreads(platform, variant, options.threads, notes);
  if (instance.started && instance.threads !== threads) {
    notes.push(`the runtime was started with ${instance.threads} threads before, and keeps them`);
  }
  if (survey.software) notes.push("the GPU is emulated in software: slow, and good for tests only");
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
  if (keep === false && captured) notes.push("outputs stay on the GPU all the same, for its graph is captured");
  return captured || keep ? possible : keep === false ? null : first.device;
}

/**
 * The device replays the commands of the first run: only with the same sizes.
 *
 * @param {import("./types.js").PackageData} data
 * @param {import("./types.js").Variant} variant
 * @param {string[]} notes
 */
function canCapture({ config }, variant, notes) {
  if (!variant.session.enable_graph_capture) return false;
  const { inputs, outputs } = config.signature;
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
  const set = asked ?? /** @type {number | undefined} */ (variant.session.intra_op_num_threads);
  const usual = variant.providers[0].name === "wasm" ? platform.threads : 1;
  if (platform.isolated) return set || usual;
  const wanted = set ? set > 1 : variant.providers[0].name === "wasm";
  if (wanted) notes.push(ONE_THREAD[platform.name]);
  return 1;
}

const ONE_THREAD = {
  browser:
    "one thread only: the page is not cross-origin isolated; serve it with the headers " +
    "Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp",
  node: "one thread only: the web runtime starts no more under Node.js",
};

/**
 * @typedef {object} Parts
 * @property {import("./types.js").Variant} variant
 * @property {import("./ort.js").Instance} instance
 * @property {Uint8Array | null} code
 * @property {Uint8Array[]} files
 * @property {Plan} plan
 * @property {Survey} survey
 */

/**
 * @param {Request} request
 * @param {Parts} parts
 */
async function openSession({ data, options }, { variant, instance, code, files, plan, survey }) {
  const outputs = data.config.signature.outputs.filter((port) => findElement(port.type));
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
    return await enqueue(instance, async () => {
      options.signal?.throwIfAborted();
      return createSession(instance, settings, files[at], makeOptions(adjusted, outputs, plan.device, beside));
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw (await recognise(instance, error)) ?? error;
  }
}

/**
 * @param {Request} request
 * @param {import("./types.js").Variant} variant
 * @param {Survey} survey
 * @param {import("./ort.js").Instance} instance
 * @param {string[]} notes
 * @param {import("./types.js").Report["seconds"]} seconds
 * @returns {import("./types.js").Report}
 */
function describe({ data, platform, downloads }, variant, survey, instance, notes, seconds) {
  const absent = data.config.signature.outputs.filter((port) => !findElement(port.type));
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
    notes: [...notes, ...absent.map((port) => `onnxruntime-web does not give the output ${JSON.stringify(port.name)}`)],
    fromCache: downloads.allCached,
    seconds,
  };
}
