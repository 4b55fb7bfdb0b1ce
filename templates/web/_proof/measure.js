// Times every variant of the bundle in turn with a plain session on the untouched model, where there is one.
import { lacksAdapter, pickOnAdapter } from "./browser.js";
import { explain, holdOn, readTask, tell } from "./channel.js";
import { invite } from "./contenders.js";
import { timeSideBySide } from "./timing.js";

/** Why a variant is left out: half a minute of compiling shaders for a CPU would be no news of anybody's GPU. */
const SOFTWARE = "it runs on the software adapter here, whose times say nothing of a GPU";

/** @typedef {import("./channel.js").Task} Task */
/** @typedef {Awaited<ReturnType<typeof invite>>} Guest */

/**
 * The plain session, opened once; null, and the server is told, where it cannot be.
 * @param {string} variant
 * @param {string} build
 * @param {string} model
 * @returns {Promise<Guest | null>}
 */
async function invitePlain(variant, build, model) {
  try {
    const plain = await invite("plain", { variant, build, model });
    await plain.open();
    await plain.call();
    return plain;
  } catch (error) {
    await tell("remark", { text: `variant ${variant} was timed alone, for a plain session cannot: ${explain(error)}` });
    return null;
  }
}

/**
 * @param {string} variant
 * @param {Task} task
 */
async function time(variant, task) {
  const bundle = await invite("bundle", { variant });
  let plain = null;
  try {
    await bundle.open();
    await bundle.call();
    if (task.model !== null) plain = await invitePlain(variant, bundle.build(), task.model);
    const [ours, theirs] = await timeSideBySide(plain ? [bundle, plain] : [bundle], task);
    await tell("timed", { variant, bundle: ours, plain: theirs ?? null });
  } finally {
    await bundle.close();
    await plain?.close();
    bundle.remove();
    plain?.remove();
  }
}

/** @param {Task} task */
async function timeAll(task) {
  const { probe } = await import(/** @type {string} */ ("/index.js"));
  const offers = /** @type {{name: string, available: boolean}[]} */ (await probe());
  const untold = task.adapter === "software" ? await pickOnAdapter(task.variants) : [];
  for (const variant of untold) await tell("remark", { text: `variant ${variant} was not timed: ${SOFTWARE}` });
  for (const variant of task.variants.filter((name) => !untold.includes(name))) {
    if (!offers.find(({ name }) => name === variant)?.available) continue;
    try {
      await time(variant, task);
    } catch (error) {
      await tell("remark", { text: `variant ${variant} could not be timed: ${explain(error)}` });
    }
  }
}

void holdOn();
const task = await readTask();
if (await lacksAdapter(task)) {
  await tell("no-adapter");
} else {
  await timeAll(task);
}
await tell("done");
