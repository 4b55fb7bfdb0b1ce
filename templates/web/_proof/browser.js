// What this browser is, and whether it has a GPU to offer.

/** Providers that run on a GPU adapter. */
const ON_ADAPTER = ["webgpu"];

/** @typedef {{brand: string, version: string}} Brand */

/** @returns {Promise<string>} for example `Chromium 156.0.8078.79` */
export async function browserName() {
  const agent = /** @type {any} */ (navigator).userAgentData;
  const values = await agent?.getHighEntropyValues(["fullVersionList"]).catch(() => null);
  /** @type {Brand[]} */
  const all = values?.fullVersionList ?? [];
  // Browsers name one that does not exist, so that nobody counts on a closed list: `Not;A=Brand`.
  const brands = all.filter(({ brand }) => !/not.*brand/i.test(brand));
  const own = brands.find(({ brand }) => brand !== "Chromium") ?? brands[0];
  return own ? `${own.brand} ${own.version}` : navigator.userAgent;
}

/**
 * @param {string[]} variants
 * @returns {Promise<string[]>} those of them that ask for a GPU adapter
 */
export async function pickOnAdapter(variants) {
  const path = "/runtime.js";
  const { config } = await import(path).catch(() => ({ config: { variants: [] } }));
  /** @type {{name: string, providers: {name: string}[]}[]} */
  const known = config.variants;
  const onAdapter = known.filter(({ providers }) => providers.some(({ name }) => ON_ADAPTER.includes(name)));
  return onAdapter.map(({ name }) => name).filter((name) => variants.includes(name));
}

/**
 * @param {import("./channel.js").Task} task
 * @returns {Promise<boolean>} whether the task counts on a GPU that this browser does not offer
 */
export async function lacksAdapter({ adapter, variants }) {
  if (adapter !== "hardware" || (await pickOnAdapter(variants)).length === 0) return false;
  const gpu = /** @type {any} */ (navigator).gpu;
  return !(await gpu?.requestAdapter().catch(() => null));
}
