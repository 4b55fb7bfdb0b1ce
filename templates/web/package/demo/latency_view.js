/** The times of some runs: median, 90th percentile, and each run as a point of a line. */

import { drawing, element } from "./elements.js";
import { latencyOf } from "./figures.js";
import { formatMilliseconds } from "./format.js";

const WIDTH = 240;
const HEIGHT = 44;
const EDGE = 4;

/** @param {readonly number[]} times */
export function latencyView(times) {
  const { median, p90, least } = latencyOf(times);
  const figure = (/** @type {string} */ label, /** @type {number} */ value) =>
    element("div", {}, element("dt", {}, label), element("dd", {}, formatMilliseconds(value)));
  return element(
    "div",
    { class: "latency", role: "status" },
    element("dl", {}, figure("Median", median), figure("90th percentile", p90), figure("Fastest", least)),
    sparkline(times, median),
  );
}

/**
 * @param {readonly number[]} times
 * @param {number} median
 */
function sparkline(times, median) {
  const most = Math.max(...times, Number.MIN_VALUE);
  const x = (/** @type {number} */ index) => EDGE + (index / Math.max(1, times.length - 1)) * (WIDTH - 2 * EDGE);
  const y = (/** @type {number} */ time) => HEIGHT - EDGE - (time / most) * (HEIGHT - 2 * EDGE);
  const points = times.map((time, index) => `${x(index).toFixed(1)},${y(time).toFixed(1)}`).join(" ");
  const dots = times.map((time, index) =>
    drawing("circle", { class: "spark-dot", cx: x(index).toFixed(1), cy: y(time).toFixed(1), r: 1.8 }),
  );
  return drawing(
    "svg",
    {
      class: "spark",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": `Times of ${times.length} runs in order`,
    },
    drawing("line", { class: "spark-median", x1: 0, x2: WIDTH, y1: y(median), y2: y(median) }),
    drawing("polyline", { class: "spark-line", points }),
    ...dots,
  );
}
