/** @file What a package's `index.js` and `node.js` are made with: `load`, `probe` and `clearCache` of one bundle. */

import { checkConfig, threads as isCount } from "./config.js";
import { Downloads, moveAssets } from "./download.js";
import { IncompatibleError, InputError } from "./errors.js";
import { BundledModel } from "./model.js";
import { findObstacle, openFirst } from "./variants.js";

const SCHEMA = 4;

/**
 * @param {import("./types.js").PackageData} data what `runtime.js` exports
 * @param {import("./types.js").Platform} platform
 * @returns {{
 *   load: (options?: import("./types.js").LoadOptions) => Promise<import("./types.js").Model>,
 *   probe: () => Promise<import("./types.js").VariantState[]>,
 *   clearCache: () => Promise<void>,
 * }}
 */
export function makePackage(data, platform) {
  return {
    load: (options = {}) => load(data, platform, options),
    probe: () => probeAll(data),
    clearCache: () => platform.clearShelf(data.identity.package),
  };
}

/**
 * @param {import("./types.js").PackageData} packaged
 * @param {import("./types.js").Platform} platform
 * @param {import("./types.js").LoadOptions} options
 */
async function load(packaged, platform, options) {
  const data = readOptions(packaged, platform, options);
  const own = takeComponent(data, data.config.components[0]);
  const variants = chooseVariants(own.component, options.variant, data.imports);
  const downloads = startDownloads(data, platform, options);
  try {
    const opened = await openFirst({ data: own, platform, downloads, options, variants });
    await finish(downloads, [opened], options.signal);
    return new BundledModel(own, platform, opened);
  } finally {
    downloads.close();
  }
}

/**
 * Check the package and what the caller asks of it; the data, with its files where they are.
 *
 * @param {import("./types.js").PackageData} packaged
 * @param {import("./types.js").Platform} platform
 * @param {import("./types.js").LoadOptions} options
 */
export function readOptions(packaged, platform, options) {
  check(packaged);
  const data = options.base === undefined ? packaged : moveFiles(packaged, resolveBase(options.base, platform));
  checkThreads(options.threads);
  options.signal?.throwIfAborted();
  return data;
}

/**
 * @param {import("./types.js").PackageData} data
 * @param {import("./types.js").Platform} platform
 * @param {import("./types.js").LoadOptions} options
 */
export function startDownloads(data, platform, options) {
  return new Downloads({
    data,
    platform,
    openShelf: async () => (options.cache === false ? null : platform.openShelf(data.identity.package)),
    signal: options.signal,
    onProgress: options.onProgress,
  });
}

/**
 * @param {Downloads} downloads
 * @param {import("./opening.js").Opened[]} opened
 * @param {AbortSignal | undefined} signal
 */
export async function finish(downloads, opened, signal) {
  await downloads.settle();
  if (signal?.aborted) {
    await Promise.all(opened.map((one) => one.release()));
    throw signal.reason;
  }
  for (const { report } of opened) report.notes.push(...downloads.notes);
  downloads.tell("ready", null, downloads.allCached);
}

/** @param {import("./types.js").PackageData} data */
function check(data) {
  checkSchema(data.config);
  checkConfig(data);
}

const SCHEMES = { browser: ["https:", "http:"], node: ["file:"] };

/**
 * @param {string | URL} base
 * @param {import("./types.js").Platform} platform
 */
function resolveBase(base, platform) {
  const known = SCHEMES[platform.name];
  const page = globalThis.location?.href;
  const url = base && URL.canParse(base, page) ? new URL(base, page) : null;
  if (!url || !known.includes(url.protocol)) {
    throw new InputError(`base: ${JSON.stringify(String(base))} is not the address of a folder`, {
      hint: `give an address that begins with ${known.join(" or ")}`,
    });
  }
  url.search = url.hash = "";
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

/**
 * @param {import("./types.js").PackageData} data
 * @param {URL} base
 * @returns {import("./types.js").PackageData}
 */
const moveFiles = (data, base) => ({ ...data, base, assets: moveAssets(data.assets, base) });

/** @param {unknown} threads */
function checkThreads(threads) {
  if (threads === undefined || threads === null || isCount(threads)) return;
  throw new InputError(`threads: ${show(threads)} is not a number of threads`, {
    hint: "give a whole number from 0 (by the device's processors) to 1024, or leave it out for the bundle's own",
  });
}

/** @param {unknown} value JSON has no NaN, and refuses a bigint */
function show(value) {
  if (typeof value === "number") return value;
  return typeof value === "string" ? JSON.stringify(value.slice(0, 40)) : `a value of type ${typeof value}`;
}

/** @param {import("./types.js").Config} config */
function checkSchema(config) {
  if (config.schema === SCHEMA) return;
  throw new IncompatibleError(`runtime.json has schema ${config.schema}`, {
    why: `${config.schema < SCHEMA ? "an earlier" : "a later"} version of bundler wrote it, and this loader reads schema ${SCHEMA}`,
    hint: "build the bundle again",
  });
}

/**
 * @param {import("./types.js").PackageData} data
 * @param {import("./types.js").Component} component
 * @returns {import("./types.js").ComponentData}
 */
export const takeComponent = (data, component) => ({ ...data, component });

/**
 * @param {import("./types.js").Component} component
 * @param {string | undefined} name
 * @param {import("./imports.js").Imports} imports
 */
export function chooseVariants({ name: component, variants }, name, imports) {
  if (name === undefined) return variants;
  const chosen = variants.filter((variant) => variant.name === name);
  if (chosen.length) return chosen;
  const elsewhere = findElsewhere(imports, component, name);
  if (elsewhere) throw new InputError(tellAbsent(imports, name), { hint: `import ${elsewhere} or ${imports.whole}` });
  const known = variants.map((variant) => variant.name).join(", ");
  throw new InputError(`there is no variant ${JSON.stringify(name)}`, { hint: `the variants are ${known}` });
}

/**
 * @param {import("./types.js").PackageData} data
 * @returns {Promise<import("./types.js").VariantState[]>}
 */
async function probeAll(data) {
  check(data); // What no `load` opens is not available either.
  return probeComponent(takeComponent(data, data.config.components[0]));
}

/**
 * The import that has a variant; nothing where no import of the package has it.
 *
 * @param {import("./imports.js").Imports} imports
 * @param {string} component
 * @param {string} name
 */
function findElsewhere({ variants }, component, name) {
  const known = variants[component] ?? {};
  return Object.hasOwn(known, name) ? known[name] : undefined;
}

/**
 * @param {import("./imports.js").Imports} imports
 * @param {string} name
 */
const tellAbsent = (imports, name) => `the variant ${name} is not part of ${imports.name}`;

/**
 * All variants of the package, those that this import leaves out included.
 *
 * @param {import("./types.js").ComponentData} data
 */
export function probeComponent(data) {
  const { component, imports } = data;
  const names = new Set([...Object.keys(imports.variants[component.name] ?? {}), ...component.variants.map(({ name }) => name)]);
  const found = [...names].map((name) => {
    const own = component.variants.find((variant) => variant.name === name);
    if (own) return probe(data, own);
    const hint = `import ${findElsewhere(imports, component.name, name)} or ${imports.whole}`;
    return { name, available: false, reason: `${tellAbsent(imports, name)}: ${hint}` };
  });
  return Promise.all(found);
}

/**
 * @param {import("./types.js").ComponentData} data
 * @param {import("./types.js").Variant} variant
 * @returns {Promise<import("./types.js").VariantState>}
 */
async function probe(data, variant) {
  const { reason, software } = await findObstacle(data, variant);
  return { name: variant.name, available: !reason, reason, ...(software === undefined ? {} : { software }) };
}
