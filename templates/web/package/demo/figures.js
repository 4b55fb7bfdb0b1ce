/** What is shown of an output: statistics, best scores, and which views suit it. Pure. */

import { isFloat } from "./numbers.js";
import { countElements } from "./shapes.js";

/** @typedef {"scores" | "number" | "picture" | "heat" | "curve" | "text" | "table"} View */
/** @typedef {import("./kinds.js").ImageAxes} ImageAxes */

const LEAST_MAP = 4;
const LEAST_PICTURE = 16;
const LEAST_CURVE = 48;
const LONGEST_SCORES = 200_000;
const SUM_SLACK = 0.02;
const PERCENT = 100;

/**
 * The views that suit an output; the best one first.
 *
 * @param {string} type
 * @param {readonly number[]} dims
 * @param {readonly unknown[] | null} [shape] as the model declares it: classes are of a fixed number, a longer input
 *   makes a longer curve
 * @returns {View[]}
 */
export function chooseViews(type, dims, shape) {
  const count = countElements(dims);
  if (type === "string" || type === "str") {
    return ["text"];
  }
  if (count <= 1) {
    return count ? ["number", "table"] : ["table"];
  }
  /** @type {View[]} */
  const views = [];
  const wide = dims.at(-1) ?? 1;
  const plane = dims.length >= 2 && (dims.at(-2) ?? 0) >= LEAST_MAP && wide >= LEAST_MAP;
  if (plane && findPicture(dims)) {
    views.push("picture");
  }
  const scores = isFloat(type) && scoreRows(dims) !== null;
  const series = wide >= LEAST_CURVE && shape?.length === dims.length && typeof shape.at(-1) !== "number";
  if (scores && !series) {
    views.push("scores");
  }
  if (plane) {
    views.push("heat");
  }
  if (wide >= LEAST_CURVE) {
    views.push("curve");
  }
  return [...views, "table"];
}

/**
 * An output that may be looked at as a colour picture: three or four channels, sides of some length.
 *
 * @param {readonly number[]} dims
 * @returns {Pick<ImageAxes, "layout" | "channels"> & { height: number, width: number } | null}
 */
export function findPicture(dims) {
  const [first = 0, second = 0, third = 0] = dims.slice(-3);
  if (dims.length < 3 || dims.length > 4) {
    return null;
  }
  const channels = (/** @type {number} */ size) => size === 3 || size === 4;
  if (channels(first) && Math.min(second, third) >= LEAST_PICTURE) {
    return { layout: "CHW", channels: first === 3 ? 3 : 4, height: second, width: third };
  }
  if (channels(third) && Math.min(first, second) >= LEAST_PICTURE) {
    return { layout: "HWC", channels: third === 3 ? 3 : 4, height: first, width: second };
  }
  return null;
}

/**
 * Rows and columns of an output that may be scores of classes: one axis of classes, at most one of rows.
 *
 * @param {readonly number[]} dims
 * @returns {{ rows: number, columns: number } | null}
 */
export function scoreRows(dims) {
  const count = countElements(dims);
  const longer = dims.filter((size) => size > 1);
  if (count < 2 || count > LONGEST_SCORES || longer.length > 2 || (longer.length === 2 && dims.length > 2)) {
    return null;
  }
  const columns = longer.at(-1) ?? 1;
  return { rows: count / columns, columns };
}

/**
 * @param {Float64Array} numbers
 */
export function statistics(numbers) {
  let least = Infinity;
  let most = -Infinity;
  let sum = 0;
  let odd = 0;
  for (const value of numbers) {
    if (!Number.isFinite(value)) {
      odd += 1;
      continue;
    }
    least = Math.min(least, value);
    most = Math.max(most, value);
    sum += value;
  }
  const finite = numbers.length - odd;
  return finite ? { least, most, mean: sum / finite, odd } : { least: NaN, most: NaN, mean: NaN, odd };
}

/**
 * The highest scores with their places.
 *
 * @param {ArrayLike<number>} scores
 * @param {number} count
 * @returns {{ index: number, value: number }[]}
 */
export function best(scores, count) {
  const places = Array.from(scores, (value, index) => ({ index, value }));
  const rank = (/** @type {number} */ value) => (Number.isNaN(value) ? -Infinity : value);
  return places.sort((one, other) => rank(other.value) - rank(one.value) || one.index - other.index).slice(0, count);
}

/**
 * Whether scores are shares of one already.
 *
 * @param {ArrayLike<number>} scores
 */
export function areShares(scores) {
  const values = Array.from(scores);
  const sum = values.reduce((total, value) => total + value, 0);
  return values.every((value) => value >= 0 && value <= 1 + SUM_SLACK) && Math.abs(sum - 1) <= SUM_SLACK;
}

/** @param {ArrayLike<number>} scores */
export function softmax(scores) {
  const values = Array.from(scores);
  const most = values.reduce((high, value) => Math.max(high, value), -Infinity);
  const powers = values.map((value) => Math.exp(value - most));
  const sum = powers.reduce((total, value) => total + value, 0);
  return powers.map((value) => value / sum);
}

/**
 * Median, 90th percentile and least of some times; percentiles by the nearest rank.
 *
 * @param {readonly number[]} times
 */
export function latencyOf(times) {
  const sorted = [...times].sort((one, other) => one - other);
  const at = (/** @type {number} */ percent) =>
    sorted[Math.max(0, Math.ceil((percent / PERCENT) * sorted.length) - 1)] ?? 0;
  const middle = sorted.length / 2;
  const median = Number.isInteger(middle) ? ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2 : at(50);
  return { median, p90: at(90), least: sorted[0] ?? 0, most: sorted.at(-1) ?? 0 };
}

/**
 * The greatest difference between an output and the recorded one; null where shapes differ.
 *
 * @param {Float64Array} actual
 * @param {Float64Array | null} recorded
 */
export function greatestDifference(actual, recorded) {
  if (recorded?.length !== actual.length) {
    return null;
  }
  let most = 0;
  actual.forEach((value, index) => {
    const other = recorded[index] ?? 0;
    const both = Number.isNaN(value) && Number.isNaN(other);
    most =
      Object.is(value, other) || both
        ? most
        : Math.max(most, Math.abs(value - other) || (value === other ? 0 : Infinity));
  });
  return most;
}
