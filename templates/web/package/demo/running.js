/** Calls of the model, and the time that they take. */

/** @typedef {import("./bundle.js").Given} Given */
/** @typedef {import("./bundle.js").Model} Model */
/** @typedef {import("./bundle.js").Tensor} Tensor */
/** @typedef {Map<string, Tensor>} Answers */

export const RUNS = 20;
/** Runs before the times count: the first ones compile shaders and fill caches. */
const WARM_UP = 2;

/**
 * One call, with all outputs brought to this side. The time is that of the call and of reading the outputs.
 *
 * @param {Model} model
 * @param {Record<string, Given>} given
 * @returns {Promise<{ answers: Answers, time: number }>}
 */
export async function callModel(model, given) {
  const start = performance.now();
  const outputs = await model.run(given);
  /** @type {Answers} */
  const answers = new Map();
  for (const [name, tensor] of Object.entries(outputs)) {
    const data = await tensor.getData();
    answers.set(name, { type: tensor.type, dims: tensor.dims, data });
  }
  const time = performance.now() - start;
  Object.values(outputs).forEach((tensor) => tensor.dispose());
  return { answers, time };
}

/**
 * @param {Model} model
 * @param {() => Record<string, Given>} read
 * @param {(text: string) => void} say
 */
export async function timeRuns(model, read, say) {
  /** @type {number[]} */
  const times = [];
  /** @type {Answers} */
  let answers = new Map();
  for (let count = -WARM_UP; count < RUNS; count += 1) {
    say(count < 0 ? "Warming up" : `Run ${count + 1} of ${RUNS}`);
    const called = await callModel(model, read());
    answers = called.answers;
    if (count >= 0) {
      times.push(called.time);
    }
    await new Promise((done) => {
      setTimeout(done);
    });
  }
  return { answers, times };
}
