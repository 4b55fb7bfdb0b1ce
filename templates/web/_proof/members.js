// A variant of a component, opened through the bundle's own entry: alone, whatever else the bundle has.

/** @typedef {import("./channel.js").Pair} Pair */
/** @typedef {{name: string, available: boolean, reason: string}} Offer */

/**
 * @typedef {object} Member
 * @property {(inputs: any) => Promise<any>} run
 * @property {() => Promise<any>} selfTest
 * @property {(test: any) => Promise<any>} testWith
 * @property {any} report
 * @property {() => Promise<void>} close
 */

/**
 * @param {any} bundle what the entry exports
 * @param {Pair} pair
 * @param {object} [options]
 * @returns {Promise<Member>}
 */
export async function openMember(bundle, { component, variant }, options = {}) {
  if (await isSole()) {
    const model = await bundle.load({ ...options, variant });
    return shape(model, model.report, () => model.dispose());
  }
  const whole = await bundle.load({ ...options, only: [component], variants: { [component]: variant } });
  return shape(whole[component], whole.report[component], () => whole.close());
}

/**
 * @param {any} member
 * @param {any} report
 * @param {() => Promise<void>} close
 */
function shape(member, report, close) {
  return {
    run: (/** @type {any} */ inputs) => member.run(inputs),
    selfTest: () => member.selfTest(),
    testWith: (/** @type {any} */ test) => member.testWith(test),
    report,
    close,
  };
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
