/** A number field for each free dimension of an input. */

import { element, field } from "./elements.js";
import { showName } from "./format.js";

/** @typedef {import("./bundle.js").Port} Port */
/** @typedef {import("./shapes.js").Sizes} Sizes */

const MOST = 1_000_000_000;

/**
 * @param {Port} port
 * @param {Sizes} sizes
 * @param {Readonly<Record<number, string>>} [titles] better words than the model's own for some axes
 * @param {readonly number[]} [left] axes that have no field
 */
export function sizeFields(port, sizes, titles = {}, left = []) {
  const axes = (port.type.shape ?? []).flatMap((size, axis) =>
    typeof size === "number" || left.includes(axis) ? [] : [axis],
  );
  const fields = axes.map((axis) => sizeField(port, sizes, axis, titles[axis]));
  return fields.length ? element("div", { class: "row" }, ...fields) : null;
}

/**
 * @param {Port} port
 * @param {Sizes} sizes
 * @param {number} axis
 * @param {string} [title]
 */
function sizeField(port, sizes, axis, title) {
  const symbol = port.type.shape?.[axis];
  const named = typeof symbol === "string" && /\w/.test(symbol) ? showName(symbol, 18) : `axis ${axis}`;
  const input = element("input", { type: "number", min: 0, max: MOST, step: 1, class: "short" });
  input.value = String(sizes.get(port, axis));
  const show = () => {
    input.value = String(sizes.get(port, axis));
  };
  // While it is typed: on leaving the field the page would move under the pointer, and the click on Run be lost.
  input.addEventListener("input", () => {
    if (input.value !== "") sizes.set(port, axis, Math.min(MOST, Number(input.value)));
  });
  input.addEventListener("change", show);
  sizes.listeners.add(() => {
    if (document.activeElement !== input) show();
  });
  return field(title ?? named, input);
}
