// Times every variant of the bundle in turn with a plain session on the original model, where there is one.
import { lacksAdapter, pickOnAdapter } from "./browser.js";
import { explain, holdOn, readTask, tell } from "./channel.js";
import { invite } from "./contenders.js";
import { timeSideBySide } from "./timing.js";

/** Why a variant is left out: half a minute of compiling shaders for a CPU would be no news of anybody's GPU. */
const SOFTWARE = "it runs on the software adapter here, whose times say nothing of a GPU";

/** @typedef {import("./channel.js").Task} Task */
/**
 * The build that the bundle takes for a variant. This visit fills the browser's caches, and is not counted.
 * @param {string} variant
 */
async function visitOnce(variant) {
  const { guest } = await invite("bundle", { variant });
  const build = guest.build();
  await guest.leave();
  return build;
}

/**
 * Whether there is a plain session to time beside the bundle; the server gets the reason otherwise.
 * @param {{variant: string, build: string, model: string}} terms
 */
async function tryPlain(terms) {
  try {
    await (await invite("plain", terms)).guest.leave();
    return true;
  } catch (error) {
    const text = `variant ${terms.variant} was timed alone, for a plain session cannot be opened: ${explain(error)}`;
    await tell("remark", { text });
    return false;
  }
}

/**
 * @param {string} variant
 * @param {Task} task
 */
async function time(variant, task) {
  const build = await visitOnce(variant);
  const invites = [() => invite("bundle", { variant })];
  if (task.model !== null) {
    const terms = { variant, build, model: task.model };
    if (await tryPlain(terms)) invites.push(() => invite("plain", terms));
  }
  const [bundle, plain] = await timeSideBySide(invites, task);
  await tell("timed", { variant, bundle, plain: plain ?? null });
}

/** @param {Task} task */
async function timeAll(task) {
  const { probe } = await import(/** @type {string} */ ("/index.js"));
  const offers = /** @type {{name: string, available: boolean}[]} */ (await probe());
  const untimed = task.adapter === "software" ? await pickOnAdapter(task.variants) : [];
  for (const variant of untimed) await tell("remark", { text: `variant ${variant} was not timed: ${SOFTWARE}` });
  for (const variant of task.variants.filter((name) => !untimed.includes(name))) {
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
