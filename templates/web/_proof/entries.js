// The imports of the package besides the whole: each must be what its name says, and a variant must run through its own.
import { findFaultyCalls, isSame } from "./calls.js";
import { openMember, probeMember } from "./members.js";

/** @typedef {import("./channel.js").Pair} Pair */
/** @typedef {{types: string, node: string, default: string}} Modules where `package.json` says that an import is */

/** The imports that a page loads by their path, and that were run from there. */
const MODULES = /** @type {Record<string, string>} */ ({ ".": "./index.js", "./self-test": "./self-test.js" });

/**
 * What is wrong with the imports of `pair`'s variant. Every one is loaded and compared with the whole package; the
 * variant's own is called, on the build of the runtime that is in this page already.
 *
 * @param {any} bundle what the whole package exports
 * @param {Pair} pair
 * @param {import("./members.js").Member} whole the same variant, opened by the package's name
 * @param {import("./calls.js").Calls} calls
 * @returns {Promise<string[]>}
 */
export async function findFaultyEntries(bundle, pair, whole, calls) {
  const exports = await readExports();
  const entries = Object.entries(exports).filter(([, modules]) => modules.default?.startsWith("./variants/"));
  if (!entries.length) return []; // A bundle of an earlier version.
  const moved = Object.keys(MODULES).find((path) => exports[path]?.default !== MODULES[path]);
  if (moved) return [`import ${moved}: package.json names ${exports[moved]?.default} in place of ${MODULES[moved]}`];
  const name = `./${pair.variant}`;
  const own = entries.filter(([path]) => path === name || path.startsWith(`${name}/`));
  if (own[0]?.[0] !== name) return [`package.json has no import ${name}`];
  const faults = [];
  for (const [path, modules] of own) {
    const found = await findFault(bundle, path.slice(2), modules).catch((error) => String(error?.message ?? error));
    if (found) faults.push(`import ${path}: ${found}`);
  }
  if (faults.length || whole.report.softwareAdapter) return faults; // It would compile all shaders again, for minutes.
  const found = await tryEntry(await import(resolve(own[0][1].default)), pair, whole, calls);
  return found.map((fault) => `import ${name}: ${fault}`);
}

/** @returns {Promise<Record<string, Modules>>} of `package.json` */
async function readExports() {
  const answer = await fetch("/package.json");
  const { exports = {} } = answer.ok ? await answer.json() : {};
  return exports;
}

/** @param {string} path relative to the package */
const resolve = (path) => path.replace(/^\./, "");

/**
 * @param {any} bundle
 * @param {string} subpath for example `webgpu/jspi`
 * @param {Modules} modules
 */
async function findFault(bundle, subpath, modules) {
  const entry = await import(resolve(modules.default));
  if (String(Object.keys(entry)) !== String(Object.keys(bundle))) return "it exports other names than the package";
  const whole = await import(at("/runtime.js"));
  const { config, builds, assets } = await import(at(`/runtime.${subpath.replaceAll("/", ".")}.js`));
  const [variant, build] = subpath.split("/");
  if (!isSame(config, narrow(whole.config, variant, build))) return "its configuration is not a part of the package's";
  if (!isSame(listVariants(await entry.probe()), listVariants(await bundle.probe()))) return "probe() lists other variants";
  const wanted = listFiles(config, builds);
  if (!isSame(Object.keys(assets).sort(), wanted)) return `it names the files ${Object.keys(assets)} in place of ${wanted}`;
  for (const path of wanted) if (!isSame(assets[path], whole.assets[path])) return `it names another ${path} than the package`;
  const parts = wanted.flatMap((path) => assets[path].parts);
  const paths = [modules.node, modules.types].map((path) => ({ url: resolve(path), size: null }));
  const missing = await Promise.all([...parts, ...paths].map(async ({ url, size }) => ((await isThere(url, size)) ? [] : [url])));
  return missing.flat().length ? `not there, or of another size: ${missing.flat().join(", ")}` : "";
}

/** @param {string} path a module of the package, which nothing resolves before it runs */
const at = (path) => path;

/**
 * The whole's configuration with one variant, on one build of the runtime where it is named.
 *
 * @param {any} config
 * @param {string} variant
 * @param {string} [build]
 */
function narrow(config, variant, build) {
  const components = config.components.map((/** @type {any} */ component) => {
    const kept = component.variants.filter((/** @type {any} */ { name }) => name === variant);
    const builds = (/** @type {any} */ one) => (build && one.builds.includes(build) ? [build] : one.builds);
    if (!kept.length) return component; // The import can still open the whole bundle.
    return { ...component, variants: kept.map((/** @type {any} */ one) => ({ ...one, builds: builds(one) })) };
  });
  return { ...config, components };
}

/**
 * The files of a configuration: of the runtime, of the models, and initial values of their state.
 *
 * @param {any} config
 * @param {Record<string, {module: string, binary: string}>} builds
 */
function listFiles({ components }, builds) {
  const variants = components.flatMap((/** @type {any} */ component) => component.variants);
  const models = variants.flatMap((/** @type {any} */ { files }) => files.map((/** @type {any} */ { path }) => path));
  const states = components.flatMap((/** @type {any} */ { state }) => (state ?? []).map((/** @type {any} */ { file }) => file));
  const names = new Set(variants.flatMap((/** @type {any} */ variant) => variant.builds));
  const runtime = [...names].flatMap((name) => [builds[name]?.module, builds[name]?.binary]);
  return [...new Set([...runtime, ...[...models, ...states.filter(Boolean)].map((path) => `payload/${path}`)])].sort();
}

/** @param {any} states of one component, or by component */
function listVariants(states) {
  const found = Array.isArray(states) ? { "": states } : states;
  return Object.entries(found).map(([component, all]) => [component, all.map((/** @type {any} */ { name }) => name)]);
}

/**
 * @param {string} url
 * @param {number | null} size
 */
async function isThere(url, size) {
  const answer = await fetch(url, { method: "HEAD", cache: "no-store" });
  return answer.ok && (size === null || Number(answer.headers.get("content-length")) === size);
}

/**
 * @param {any} entry
 * @param {Pair} pair
 * @param {import("./members.js").Member} whole
 * @param {import("./calls.js").Calls} calls
 * @returns {Promise<string[]>}
 */
async function tryEntry(entry, pair, whole, calls) {
  if (!(await probeMember(entry, pair))?.available) return [`it cannot run ${pair.variant}, and the package can`];
  const { model, report, close } = await openMember(entry, pair, { cache: false });
  try {
    const { variant, build } = report;
    if (variant !== pair.variant || build !== whole.report.build) return [`it opened ${variant} on the build ${build} in its place`];
    return await findFaultyCalls(model, calls);
  } finally {
    await close();
  }
}
