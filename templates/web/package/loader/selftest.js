/** @file The test of an open model against its golden set. */

import { moveAssets } from "./download.js";
import { InputError } from "./errors.js";
import { openGolden } from "./golden.js";
import { OutputFigures } from "./metrics.js";
import { describeType, findElement } from "./signature.js";

/**
 * What a package's `self-test.js` is made with.
 *
 * @param {Record<string, import("./types.js").Asset>} golden the files of the golden sets
 * @returns {(opened: any) => Promise<any>} tests a model or a bundle, which any import of the package may have opened
 */
export const makeSelfTest = (golden) => async (opened) => {
  if (typeof opened?.testWith === "function") {
    return opened.testWith(
      (/** @type {Parameters<import("./imports.js").Test>} */ ...[model, data, platform]) =>
        testModel(model, { ...data, assets: data.base ? moveAssets(golden, data.base) : golden }, platform),
    );
  }
  throw new InputError("selfTest tests a model that is open", { hint: "give it what load() of this package returns" });
};

/**
 * Run every sample, or the first few, and compare.
 *
 * @param {import("./types.js").Model} model
 * @param {import("./types.js").ComponentData} data
 * @param {import("./types.js").Platform} platform
 * @param {number} [most] samples
 * @returns {Promise<import("./types.js").SelfTest>}
 */
export async function testModel(model, data, platform, most = Infinity) {
  const golden = await openGolden(data, platform);
  golden.samples.splice(most);
  const toleranceOf = readGate(model, data.component);
  const figures = model.outputs.map((port) => ({
    port,
    found: new OutputFigures(port.name, golden.references.get(port.name)),
  }));
  const stream = golden.state.length ? /** @type {import("./model.js").BundledModel} */ (model).stream() : null;
  for await (const sample of golden.read()) {
    const results = await runSample(model, sample, golden, stream);
    for (const { port, found } of figures) compare(data.component, port, found, results[port.name], sample, toleranceOf(port.name));
  }
  stream?.close();
  const faults = figures.flatMap(({ port, found }) => {
    const fault = found.findFault(data.component.unstable_outputs.includes(port.name) ? null : toleranceOf(port.name));
    return fault === null ? [] : [`output ${quoteName(port.name)}: ${fault}`];
  });
  const unjudged = findUnjudged(figures.map(({ found }) => found), toleranceOf);
  return {
    passed: !faults.length,
    samples: golden.samples.length,
    synthetic: golden.synthetic,
    faults,
    unjudged,
    outputs: figures.map(({ found }) => (Object.hasOwn(unjudged, found.name) ? blank(found) : found.toJSON())),
  };
}

/**
 * An output without figures, which say nothing where it could not be judged.
 *
 * @param {OutputFigures} found
 */
function blank(found) {
  const { name, mismatch, ...figures } = found.toJSON();
  const none = Object.fromEntries(Object.keys(figures).map((key) => [key, null]));
  return /** @type {import("./types.js").OutputFigures} */ (/** @type {unknown} */ ({ name, ...none, mismatch }));
}

/**
 * Why outputs could not have failed: they differ from run to run, are constant in the golden set, or have no limits.
 *
 * @param {OutputFigures[]} figures
 * @param {(output: string) => import("./types.js").Tolerance} toleranceOf
 * @returns {Record<string, string>}
 */
function findUnjudged(figures, toleranceOf) {
  const found = figures.map(({ name, reference }) => {
    const why = toleranceOf(name).judged === false ? "it has no limits" : reference.unjudged;
    return /** @type {const} */ ([name, why]);
  });
  return Object.fromEntries(found.filter(([, why]) => why));
}

/**
 * The tolerance of the running variant for each output.
 *
 * @param {import("./types.js").Model} model
 * @param {import("./types.js").Component} component
 * @returns {(output: string) => import("./types.js").Tolerance}
 */
function readGate(model, component) {
  const { gate } = /** @type {import("./types.js").Variant} */ (
    component.variants.find(({ name }) => name === model.report.variant)
  );
  return (output) => (Object.hasOwn(gate.outputs, output) ? gate.outputs[output] : gate.default);
}

/**
 * A sample by itself; of a sequence a step, with the state of the step before and not the recorded one.
 *
 * @param {import("./types.js").Model} model
 * @param {import("./golden.js").Sample} sample
 * @param {import("./golden.js").GoldenSet} golden
 * @param {import("./types.js").Stream | null} stream
 */
async function runSample(model, sample, golden, stream) {
  /** @type {import("./types.js").Inputs} */
  const inputs = Object.create(null);
  for (const [name, tensor] of sample.inputs) if (tensor) inputs[name] = tensor;
  for (const [input] of golden.state) delete inputs[input];
  const outputs = await (stream ?? model).run(inputs);
  /** @type {Record<string, import("./golden.js").Tensor>} */
  const results = Object.create(null);
  for (const [name, tensor] of Object.entries(outputs)) {
    results[name] = { type: tensor.type, dims: tensor.dims, data: await tensor.getData() };
    tensor.dispose();
  }
  const state = await stream?.getState();
  for (const [input, output] of golden.state) if (state) results[output] = state[input];
  return results;
}

/**
 * @param {import("./types.js").Component} component
 * @param {import("./types.js").Port} port
 * @param {OutputFigures} found
 * @param {import("./golden.js").Tensor | undefined} actual
 * @param {import("./golden.js").Sample} sample
 * @param {import("./types.js").Tolerance} tolerance
 */
function compare(component, port, found, actual, sample, tolerance) {
  const reference = sample.outputs.get(port.name);
  const where = `sample ${quoteName(sample.name)}`;
  if (reference === undefined) found.refuse(`${where} has no recorded value of it`);
  else if (!findElement(port.type) || !reference || !actual) {
    found.refuse(`${where}: onnxruntime-web does not return values of the type ${describeType(port.type)}`);
  } else if (component.unstable_outputs.includes(port.name) && isAlike(actual, reference)) {
    found.add(reference, reference, tolerance, where); // Of a random output only type and shape are checked.
  } else found.add(actual, reference, tolerance, where);
}

/**
 * @param {import("./golden.js").Tensor} actual
 * @param {import("./golden.js").Tensor} reference
 */
function isAlike(actual, reference) {
  return actual.type === reference.type && String(actual.dims) === String(reference.dims);
}

/** @param {string} name */
const quoteName = (name) => `'${JSON.stringify(name).slice(1, -1)}'`;
