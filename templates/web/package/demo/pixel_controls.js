/** How a picture becomes numbers: what a person may choose. */

import { choice, field } from "./elements.js";
import { SCALES } from "./pixels.js";

/** @typedef {import("./pixels.js").Scale} Scale */
/** @typedef {import("./pixels.js").Fit} Fit */
/** @typedef {{ fit: Fit, scale: Scale, reversed: boolean }} PixelOptions */

const FITS = [
  { value: "contain", text: "show all" },
  { value: "cover", text: "fill, cut edges" },
  { value: "stretch", text: "stretch" },
];
const ORDERS = [
  { value: "rgb", text: "red first" },
  { value: "bgr", text: "blue first" },
];

/**
 * @param {Scale} scale
 * @param {boolean} coloured
 * @param {() => void} changed
 */
export function createPixelControls(scale, coloured, changed) {
  /** @type {PixelOptions} */
  const options = { fit: "contain", scale, reversed: false };
  const scales = Object.entries(SCALES).map(([value, text]) => ({ value, text }));
  const set = (/** @type {Partial<PixelOptions>} */ part) => {
    Object.assign(options, part);
    changed();
  };
  const fields = [
    field(
      "Fit",
      choice(FITS, options.fit, (value) => set({ fit: /** @type {Fit} */ (value) })),
    ),
    field(
      "Scale",
      choice(scales, scale, (value) => set({ scale: /** @type {Scale} */ (value) })),
    ),
    coloured
      ? field(
          "Colours",
          choice(ORDERS, "rgb", (value) => set({ reversed: value === "bgr" })),
        )
      : null,
  ];
  return { options, fields };
}
