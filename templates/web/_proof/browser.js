// What this browser is, and whether it has a GPU to offer.

/** Providers that run on a GPU adapter. */
const ON_ADAPTER = ["webgpu"];

/** @typedef {{brand: string, version: string}} Brand */

/** @returns {Promise<string>} for example `Chromium 156.0.8078.79` */
export async function browserName() {
  const agent = /** @type {any} */ (navigator).userAgentData;
  const told = await agent?.getHighEntropyValues(["fullVersionList"]).catch(() => null);
  /** @type {Brand[]} */
  const brands = (told?.fullVersionList ?? []).filter((/** @type {Brand} */ { brand }) => !/not.?a.?brand/i.test(brand.replace(/[^a-z]+/gi, " ")));
  const own = brands.find(({ brand }) => brand !== "Chromium") ?? brands[0];
  return own ? `${own.brand} ${own.version}` : navigator.userAgent;
}

/**
 * @param {string[]} variants
 * @returns {Promise<boolean>} whether one of them asks for a GPU adapter
 */
export async function wantsAdapter(variants) {
  const path = "/runtime.js";
  const { config } = await import(path).catch(() => ({ config: { variants: [] } }));
  return config.variants.some(
    (/** @type {{name: string, providers: {name: string}[]}} */ { name, providers }) =>
      variants.includes(name) && providers.some((provider) => ON_ADAPTER.includes(provider.name)),
  );
}

/** @returns {Promise<boolean>} whether the browser gives out a GPU adapter */
export async function hasAdapter() {
  const gpu = /** @type {any} */ (navigator).gpu;
  return Boolean(await gpu?.requestAdapter().catch(() => null));
}
