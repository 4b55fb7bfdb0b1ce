// How long models take, timed in turns, so that a busy machine is unfair to none of them.

/** Calls of one model before it is another's turn. */
const MOST_AT_ONCE = 20;

/** No turn takes more than this part of the time: each model has its calls, however long one takes. */
const TURNS = 20;

/** Calls before the steady loop. */
const WARM_UP = 5;

/** @typedef {import("./contenders.js").Contender} Contender */
/** @typedef {{openings: number, runs: number, seconds: number}} Limits */
/** @typedef {{opening_ms: number[], latency_ms: number[]}} Series */

/**
 * When the seconds are over it makes do with what it has: at least one opening and one call of each.
 * @param {Contender[]} contenders opened once already
 * @param {Limits} limits
 * @returns {Promise<Series[]>} milliseconds; an opening counts until the first answer
 */
export async function timeSideBySide(contenders, { openings, runs, seconds }) {
  const began = performance.now();
  const until = (/** @type {number} */ share) => began + share * seconds * 1000;
  const series = contenders.map(() => /** @type {Series} */ ({ opening_ms: [], latency_ms: [] }));
  for (let turn = 0; turn < openings && (turn === 0 || performance.now() < until(0.5)); turn++) {
    for (const [at, one] of contenders.entries()) series[at].opening_ms.push(await timeOpening(one));
  }
  for (let turn = 0; turn < WARM_UP && performance.now() < until(0.66); turn++) {
    for (const one of contenders) await one.call();
  }
  const block = Math.min(MOST_AT_ONCE, Math.max(1, Math.floor(runs / 10)));
  for (let done = 0; done < runs && (done === 0 || performance.now() < until(1)); done += block) {
    for (const [at, one] of contenders.entries()) {
      series[at].latency_ms.push(...(await timeCalls(one, block, (seconds * 1000) / TURNS)));
    }
  }
  return series;
}

/** @param {Contender} one */
async function timeOpening(one) {
  await one.close();
  const began = performance.now();
  await one.open();
  await one.call();
  return performance.now() - began;
}

/**
 * @param {Contender} one
 * @param {number} times
 * @param {number} most milliseconds
 */
async function timeCalls(one, times, most) {
  await one.call(); // The other model's turn has cooled the caches.
  const began = performance.now();
  const taken = [];
  while (taken.length < times && (taken.length === 0 || performance.now() - began < most)) {
    const start = performance.now();
    await one.call();
    taken.push(performance.now() - start);
  }
  return taken;
}
