// A variant of a component, opened through the bundle's own entry: alone, whatever else the bundle has.

/** @typedef {import("./channel.js").Pair} Pair */
/** @typedef {{name: string, available: boolean, reason: string}} Offer */
/** @typedef {{model: any, report: any, close: () => Promise<void>}} Member `model` is what an application holds */

/**
 * @param {any} bundle what the entry exports
 * @param {Pair} pair
 * @param {object} [options]
 * @returns {Promise<Member>}
 */
export async function openMember(bundle, { component, variant }, options = {}) {
  if (await isSole()) {
    const model = await bundle.load({ ...options, variant });
    return { model, report: model.report, close: () => model.dispose() };
  }
  const whole = await bundle.load({ ...options, only: [component], variants: { [component]: variant } });
  return { model: whole[component], report: whole.report[component], close: () => whole.close() };
}

/**
 * @param {any} bundle
 * @param {Pair} pair
 * @returns {Promise<Offer | undefined>}
 */
export async function probeMember(bundle, { component, variant }) {
  const found = await bundle.probe();
  return ((await isSole()) ? found : found[component]).find((/** @type {Offer} */ { name }) => name === variant);
}

/** @param {Pair} pair how people read it */
export async function nameMember({ component, variant }) {
  return (await isSole()) ? variant : `${component}/${variant}`;
}

async function isSole() {
  const path = "/runtime.js";
  const { config } = await import(path);
  return config.components.length === 1;
}
