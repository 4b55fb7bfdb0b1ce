// Times every variant of the bundle in turn with a plain session on the original model, where there is one.
import { lacksAdapter, pickOnAdapter } from "./browser.js";
import { explain, holdOn, readTask, tell } from "./channel.js";
import { invite } from "./contenders.js";
import { nameMember, probeMember } from "./members.js";
import { timeSideBySide } from "./timing.js";

/** Why a variant is left out: half a minute of compiling shaders for a CPU would be no news of anybody's GPU. */
const SOFTWARE = "it runs on the software adapter here, whose times say nothing of a GPU";

/** @typedef {import("./channel.js").Task} Task */
/** @typedef {import("./channel.js").Pair} Pair */

/**
 * The build that the bundle takes for a variant. This visit fills the browser's caches, and is not counted.
 * @param {Pair} pair
 */
async function visitOnce(pair) {
  const { guest } = await invite("bundle", pair);
  const build = guest.build();
  await guest.leave();
  return build;
}

/**
 * Whether there is a plain session to time beside the bundle; the server gets the reason otherwise.
 * @param {import("./contenders.js").Terms} terms
 */
async function tryPlain(terms) {
  try {
    await (await invite("plain", terms)).guest.leave();
    return true;
  } catch (error) {
    const text = `variant ${await nameMember(terms)} was timed alone, for a plain session cannot be opened: ${explain(error)}`;
    await tell("remark", { text });
    return false;
  }
}

/**
 * @param {Pair} pair
 * @param {Task} task
 */
async function time(pair, task) {
  const build = await visitOnce(pair);
  const invites = [() => invite("bundle", pair)];
  const model = task.models[pair.component];
  if (model !== undefined) {
    const terms = { ...pair, build, model };
    if (await tryPlain(terms)) invites.push(() => invite("plain", terms));
  }
  const [bundle, plain] = await timeSideBySide(invites, task);
  await tell("timed", { ...pair, bundle, plain: plain ?? null });
}

/** @param {Task} task */
async function timeAll(task) {
  const bundle = await import(/** @type {string} */ ("/index.js"));
  const untimed = task.adapter === "software" ? await pickOnAdapter(task.variants) : [];
  for (const pair of task.variants) {
    const name = await nameMember(pair);
    if (untimed.includes(pair)) {
      await tell("remark", { text: `variant ${name} was not timed: ${SOFTWARE}` });
      continue;
    }
    if (!(await probeMember(bundle, pair))?.available) continue;
    try {
      await time(pair, task);
    } catch (error) {
      await tell("remark", { text: `variant ${name} could not be timed: ${explain(error)}` });
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
