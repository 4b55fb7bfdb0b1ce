/** The highest scores as bars. */

import { choice, element, field, refill } from "./elements.js";
import { areShares, best, scoreRows, softmax } from "./figures.js";
import { formatNumber, showName } from "./format.js";

const SHOWN = 5;
const SHOWN_MORE = 20;
const MOST_ROWS = 1000;

/**
 * @param {Float64Array} numbers
 * @param {readonly number[]} dims
 * @param {readonly string[]} labels
 */
export function scoresView(numbers, dims, labels) {
  const { rows, columns } = scoreRows(dims) ?? { rows: 1, columns: numbers.length };
  let row = 0;
  let shown = SHOWN;
  const first = numbers.subarray(0, columns);
  let shares = false;
  const list = element("ol", { class: "bars" });

  function show() {
    const raw = numbers.subarray(row * columns, (row + 1) * columns);
    const scores = shares ? softmax(raw) : raw;
    const percent = shares || areShares(raw);
    const top = best(scores, shown);
    const most = percent ? 1 : Math.max(...top.map(({ value }) => Math.abs(value)), Number.MIN_VALUE);
    refill(
      list,
      ...top.map(({ index, value }) => barOf(labelOf(index, labels), value, Math.abs(value) / most, percent)),
    );
  }

  const soft = element("input", { type: "checkbox" });
  soft.addEventListener("change", () => ((shares = soft.checked), show()));
  const rowNumbers = Array.from({ length: Math.min(rows, MOST_ROWS) }, (_, index) => ({
    value: String(index),
    text: `row ${index}`,
  }));
  const counts = [SHOWN, SHOWN_MORE].map((count) => ({ value: String(count), text: `best ${count}` }));
  const made = element("div", {});
  refill(
    made,
    list,
    element(
      "div",
      { class: "row bottom" },
      rows > 1
        ? field(
            "Row",
            choice(rowNumbers, "0", (value) => ((row = Number(value)), show())),
          )
        : null,
      columns > SHOWN
        ? field(
            "Show",
            choice(counts, String(SHOWN), (value) => ((shown = Number(value)), show())),
          )
        : null,
      areShares(first) ? null : element("label", { class: "inline" }, soft, "as softmax"),
    ),
  );
  show();
  return made;
}

/**
 * @param {string} label
 * @param {number} value
 * @param {number} share
 * @param {boolean} percent
 */
function barOf(label, value, share, percent) {
  const bar = element(
    "span",
    { class: "bar", "aria-hidden": "true" },
    element("span", { class: value < 0 ? "less" : "" }),
  );
  const fill = /** @type {HTMLElement} */ (bar.firstElementChild);
  fill.style.width = `${Math.min(1, Number.isFinite(share) ? share : 0) * 100}%`;
  const text = percent ? formatShare(value) : formatNumber(value);
  return element(
    "li",
    {},
    element("bdi", { class: "bar-name" }, label),
    bar,
    element("span", { class: "bar-value" }, text),
  );
}

/**
 * @param {number} index
 * @param {readonly string[]} labels
 */
function labelOf(index, labels) {
  const label = labels[index];
  return label ? showName(label, 48) : `class ${index}`;
}

/** @param {number} share */
function formatShare(share) {
  const percent = (share * 100).toFixed(1);
  return percent === "100.0" && share < 1 ? "> 99.9 %" : percent === "0.0" && share > 0 ? "< 0.1 %" : `${percent} %`;
}
