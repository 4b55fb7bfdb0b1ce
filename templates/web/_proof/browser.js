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
 * @param {import("./channel.js").Pair[]} pairs
 * @returns {Promise<import("./channel.js").Pair[]>} those of them that ask for a GPU adapter
 */
export async function pickOnAdapter(pairs) {
  const path = "/runtime.js";
  const { config } = await import(path).catch(() => ({ config: { components: [] } }));
  return pairs.filter((pair) =>
    findProviders(config, pair).some((/** @type {{name: string}} */ { name }) => ON_ADAPTER.includes(name)),
  );
}

/**
 * @param {any} config
 * @param {import("./channel.js").Pair} pair
 * @returns {{name: string}[]}
 */
export function findProviders({ components }, { component, variant }) {
  const owner = components.find((/** @type {{name: string}} */ { name }) => name === component);
  return owner?.variants.find((/** @type {{name: string}} */ { name }) => name === variant)?.providers ?? [];
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
