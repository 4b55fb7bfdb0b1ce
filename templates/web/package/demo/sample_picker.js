/** The list that fills all inputs with a recorded sample. */

import { choice, element } from "./elements.js";

/**
 * @param {number} count
 * @param {(index: number) => void} taken
 */
export function createSamplePicker(count, taken) {
  const options = Array.from({ length: count }, (_, index) => ({
    value: String(index),
    text: `Golden sample ${index}`,
  }));
  const select = choice(options, "0", (value) => taken(Number(value)), { "aria-label": "Golden sample" });
  const again = element("button", { type: "button", click: () => taken(Number(select.value)) }, "Fill in");
  return element("div", { class: "row" }, select, again);
}
