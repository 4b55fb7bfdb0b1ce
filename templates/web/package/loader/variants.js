/** @file Which variant runs here, and why the ones before it do not. There is no silent fallback. */

import { canRunBuild, findProvider, findWasmObstacle } from "./capabilities.js";
import {
  BundleError,
  DownloadError,
  FallbackError,
  IncompatibleError,
  IntegrityError,
  OutOfMemoryError,
} from "./errors.js";
import { openVariant } from "./opening.js";
import { firstLine, isLoaded, outOfMemory } from "./ort.js";
import { findElement, usesHalf } from "./signature.js";

const SYSTEM = "Emscripten";

/**
 * @typedef {object} Request
 * @property {import("./types.js").ComponentData} data
 * @property {import("./types.js").Platform} platform
 * @property {import("./download.js").Downloads} downloads
 * @property {import("./types.js").LoadOptions} options
 * @property {import("./types.js").Variant[]} variants
 * @property {string} [build] the one to prefer, because other components take it
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
 * @returns {Promise<import("./opening.js").Opened>}
 */
export async function openFirst(request) {
  const strict = request.options.strict ?? request.data.config.fallback === "strict";
  /** @type {Record<string, string>} */
  const rejected = Object.create(null);
  let last = null;
  for (const variant of request.variants) {
    const survey = await findObstacle(request.data, variant, request.build);
    try {
      if (survey.reason) throw new IncompatibleError(survey.reason);
      const opened = await openVariant(request, variant, survey);
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
 * Errors that stop the whole load are thrown; errors of one variant are returned.
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
    return new FallbackError(`variant ${request.variants[0].name} cannot run here, and strict mode allows no other`, {
      ...details,
      hint: "fix the cause, or load the model with strict: false",
    });
  }
  if (last instanceof OutOfMemoryError) return last;
  const hint = adviseInstead(request.data);
  return new IncompatibleError("no variant of this model can run here", { ...details, hint });
}

/** @param {import("./types.js").PackageData} data */
export function adviseInstead({ imports: { name, whole } }) {
  if (name !== whole) return `import ${whole}, which has all variants and builds of the runtime`;
  return "use a newer browser, or build the bundle for one of its other targets";
}

/**
 * @param {import("./types.js").ComponentData} data
 * @param {import("./types.js").Variant} variant
 * @param {string} [preferred] a build
 * @returns {Promise<Survey>}
 */
export async function findObstacle(data, variant, preferred) {
  const build = chooseBuild(data, variant, preferred);
  /** @type {Survey} */
  const survey = {
    reason: findWasmObstacle() || findMisfit(data, variant, build),
    build,
    adapter: null,
    software: undefined,
  };
  if (survey.reason) return survey;
  const needed = listFeatures(data, variant);
  for (const provider of variant.providers) {
    const finding = await findProvider(provider, needed);
    survey.reason ||= finding.reason;
    survey.adapter ??= finding.adapter ?? null;
    survey.software ??= finding.software;
  }
  return survey;
}

/**
 * The required GPU features: those of the variant, and those of the model's inputs and outputs.
 *
 * @param {import("./types.js").ComponentData} data
 * @param {import("./types.js").Variant} variant
 * @returns {string[]}
 */
function listFeatures({ component }, variant) {
  const { inputs, outputs } = component.signature;
  const ports = usesHalf([...inputs, ...outputs]) ? ["shader-f16"] : [];
  return [...new Set([...(variant.requires.features ?? []), ...ports])];
}

/**
 * One that this page has loaded already is preferred to one that must be downloaded.
 *
 * @param {import("./types.js").ComponentData} data
 * @param {import("./types.js").Variant} variant
 * @param {string | undefined} preferred
 */
function chooseBuild(data, variant, preferred) {
  const fit = variant.builds.filter((build) => Object.hasOwn(data.builds, build) && canRunBuild(build));
  if (preferred && fit.includes(preferred)) return preferred;
  return fit.find((build) => isLoaded(data.builds[build].module)) ?? fit[0] ?? "";
}

/**
 * @param {import("./types.js").ComponentData} data
 * @param {import("./types.js").Variant} variant
 * @param {string} build
 */
function findMisfit({ component, imports }, variant, build) {
  const { systems } = variant.requires;
  if (systems.length && !systems.includes(SYSTEM)) return `it is for ${systems.join(" or ")}, this is ${SYSTEM}`;
  if (!build) return `${imports.name} has no build of the runtime for it that can run here (${variant.builds.join(", ")})`;
  const strange = component.signature.inputs.find((port) => !findElement(port.type) && !port.optional);
  if (strange) return `onnxruntime-web does not support the type of the input ${JSON.stringify(strange.name)}`;
  return component.signature.outputs.some((port) => findElement(port.type))
    ? ""
    : "onnxruntime-web returns none of its outputs";
}
