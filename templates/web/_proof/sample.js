// The recorded samples of a component, as the loader's self-test reads them, and whatever the package's entries open.

/** @typedef {Record<string, {type: string, data: any, dims: readonly number[]}>} Values tensors by the model's own names */

/**
 * @param {string} name
 * @param {number} most
 * @returns {Promise<{component: any, samples: Values[]}>} the component in `runtime.js`, and its first inputs
 */
export async function readSamples(name, most) {
  const modules = ["/runtime.js", "/golden.js", "/loader/golden.js", "/loader/browser.js"];
  const [runtime, { assets }, { openGolden }, { browser }] = await Promise.all(modules.map((path) => import(path)));
  const component = runtime.config.components.find((/** @type {{name: string}} */ one) => one.name === name);
  const golden = await openGolden({ ...runtime, component, assets }, browser);
  const samples = [];
  for (const { inputs } of golden.samples.slice(0, most)) {
    const read = /** @type {[string, any][]} */ ([...(await golden.readAll(inputs))]);
    samples.push(Object.fromEntries(read.filter(([, value]) => value)));
  }
  return { component, samples };
}
