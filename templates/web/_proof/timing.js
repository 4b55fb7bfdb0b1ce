// How long models take, timed in turns, so that a busy machine is unfair to none of them.

/** Calls of one model before it is another's turn. */
const MOST_AT_ONCE = 20;

/** No turn takes more than this part of the time: each model has its calls, however long one takes. */
const TURNS = 20;

/** Calls before the steady loop. */
const WARM_UP = 5;

/** @typedef {import("./contenders.js").Guest} Guest */
/** @typedef {() => Promise<{guest: Guest, opening: number}>} Invite */
/** @typedef {{openings: number, runs: number, seconds: number}} Limits */
/** @typedef {{opening_ms: number[], latency_ms: number[]}} Series */

/**
 * When the seconds are over it makes do with what it has: at least one opening and one call of each. Each opening is
 * in a frame of its own, with nothing loaded but what the browser keeps: as on the second visit to a page.
 * @param {Invite[]} invites
 * @param {Limits} limits
 * @returns {Promise<Series[]>} milliseconds; an opening counts until the first answer
 */
export async function timeSideBySide(invites, { openings, runs, seconds }) {
  const began = performance.now();
  const until = (/** @type {number} */ share) => began + share * seconds * 1000;
  const series = invites.map(() => /** @type {Series} */ ({ opening_ms: [], latency_ms: [] }));
  /** @type {Guest[]} */
  const guests = [];
  try {
    for (let turn = 0; turn < openings && (turn === 0 || performance.now() < until(0.5)); turn++) {
      for (const [at, invite] of invites.entries()) {
        await guests[at]?.leave();
        const { guest, opening } = await invite();
        guests[at] = guest;
        series[at].opening_ms.push(opening);
      }
    }
    await timeLoop(guests, series, runs, (seconds * 1000) / TURNS, until);
  } finally {
    for (const guest of guests) await guest.leave();
  }
  return series;
}

/**
 * @param {Guest[]} guests
 * @param {Series[]} series
 * @param {number} runs
 * @param {number} most milliseconds of one turn
 * @param {(share: number) => number} until
 */
async function timeLoop(guests, series, runs, most, until) {
  for (let turn = 0; turn < WARM_UP && performance.now() < until(0.66); turn++) {
    for (const guest of guests) await guest.call();
  }
  const block = Math.min(MOST_AT_ONCE, Math.max(1, Math.floor(runs / 10)));
  for (let done = 0; done < runs && (done === 0 || performance.now() < until(1)); done += block) {
    for (const [at, guest] of guests.entries()) {
      series[at].latency_ms.push(...(await timeCalls(guest, block, most)));
    }
  }
}

/**
 * @param {Guest} one
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
