/** @file The capabilities of this browser, tested before anything is downloaded. */

/**
 * @typedef {object} Finding what one provider needs and whether it is there
 * @property {string} reason why it cannot run here; empty when it can
 * @property {GPUAdapter | null} [adapter]
 * @property {boolean} [software]
 */

/** A module of one function that uses SIMD: i32x4.dot_i16x8_s over two vectors. */
const SIMD_MODULE = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 16, 1, 14, 0, 65, 0, 253, 15, 65, 0, 253, 15, 253,
  186, 1, 26, 11,
];

const SOFTWARE = /swiftshader|llvmpipe|lavapipe|softpipe|basic render|warp/i;

/** Why the WebAssembly that the runtime requires is not available; empty when it is. */
export function findWasmObstacle() {
  if (typeof WebAssembly !== "object") return "WebAssembly is not available here, or it is turned off";
  const bytes = new Uint8Array(SIMD_MODULE);
  if (!WebAssembly.validate(bytes)) {
    return "WebAssembly SIMD is not available here; Chrome and Edge have it from 91, Firefox from 89, Safari from 16.4";
  }
  try {
    // Throws where the page's security policy forbids it; there is nothing to import.
    return WebAssembly.Module.imports(new WebAssembly.Module(bytes)).join();
  } catch (error) {
    return `the page's security policy forbids WebAssembly; it needs script-src 'wasm-unsafe-eval' (${error})`;
  }
}

/**
 * Which build of the runtime can run here: WebGPU and WebNN wait inside WebAssembly, by JSPI where available.
 *
 * @param {string} build
 */
export function canRunBuild(build) {
  return build !== "jspi" || "Suspending" in WebAssembly;
}

/**
 * @param {import("./types.js").ProviderEntry} provider
 * @param {string[]} needed features of a GPU that the model computes with
 * @returns {Promise<Finding>}
 */
export async function findProvider(provider, needed) {
  const find = PROVIDERS[provider.name];
  return find ? find(provider, needed) : { reason: `this loader does not support the provider ${provider.name}` };
}

/** @type {Record<string, (provider: import("./types.js").ProviderEntry, needed: string[]) => Promise<Finding>>} */
const PROVIDERS = { wasm: async () => ({ reason: "" }), webgpu: findWebgpu, webnn: findWebnn };

/**
 * @param {import("./types.js").ProviderEntry} provider
 * @param {string[]} needed
 * @returns {Promise<Finding>}
 */
async function findWebgpu(provider, needed) {
  if (!globalThis.navigator?.gpu) return { reason: explainNoGpu() };
  const adapter = await requestAdapter(provider.options.powerPreference).catch(String);
  if (typeof adapter === "string") return { reason: `the browser refused a GPU (${adapter})` };
  if (!adapter) return { reason: "the browser has WebGPU but offers no GPU: its driver may be missing or blocked" };
  const software = isSoftware(adapter);
  const missing = needed.filter((name) => !adapter.features.has(/** @type {GPUFeatureName} */ (name)));
  if (missing.length) return { reason: `this GPU does not support ${missing.map(tellFeature).join(", ")}`, adapter, software };
  return { reason: "", adapter, software };
}

/** @param {string} name */
function tellFeature(name) {
  return name === "shader-f16" ? "float16, which the model computes with (shader-f16)" : name;
}

function explainNoGpu() {
  if (globalThis.isSecureContext === false) return "this page has no WebGPU: it requires https or localhost";
  return "WebGPU is not available here; Chrome and Edge have it from 113, Safari from 26, Firefox from 141 (Windows)";
}

/**
 * @param {string | undefined} powerPreference
 * @returns {Promise<GPUAdapter | null>}
 */
function requestAdapter(powerPreference) {
  const preference = /** @type {GPUPowerPreference | undefined} */ (powerPreference);
  return navigator.gpu.requestAdapter({ powerPreference: preference });
}

/** @param {GPUAdapter} adapter */
function isSoftware(adapter) {
  const old = /** @type {{ isFallbackAdapter?: boolean }} */ (adapter).isFallbackAdapter;
  return Boolean(adapter.info?.isFallbackAdapter ?? old) || SOFTWARE.test(describeAdapter(adapter));
}

/** @param {GPUAdapter} adapter */
export function describeAdapter(adapter) {
  const { vendor = "", architecture = "", description = "" } = adapter.info ?? {};
  return [vendor, architecture, description].filter(Boolean).join(" ") || "unnamed GPU";
}

/**
 * @param {import("./types.js").ProviderEntry} provider
 * @returns {Promise<Finding>}
 */
async function findWebnn(provider) {
  const ml = /** @type {{ createContext?: (options: object) => Promise<{ destroy?: () => void }> } | undefined} */ (
    /** @type {{ ml?: unknown }} */ (globalThis.navigator ?? {}).ml
  );
  if (!ml?.createContext) return { reason: "WebNN is not available here; Chrome and Edge have it behind a flag" };
  const { deviceType, powerPreference } = provider.options;
  try {
    (await ml.createContext({ deviceType, powerPreference })).destroy?.();
    return { reason: "" };
  } catch (error) {
    return { reason: `the browser has WebNN but could not create a context (${error})` };
  }
}
