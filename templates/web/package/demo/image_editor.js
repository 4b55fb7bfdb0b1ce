/** The editor for pictures: a sheet to draw, drop or paste on, and how its pixels become the model's numbers. */

import { acceptDrops, choice, element, field, filePicker, refill } from "./elements.js";
import { guessScale } from "./kinds.js";
import { decode, encode } from "./numbers.js";
import { placeIn, SCALES, toNumbers } from "./pixels.js";
import { InputProblem } from "./problems.js";
import { countElements } from "./shapes.js";
import { sizeFields } from "./size_fields.js";
import { createSheet } from "./sheet.js";

/** @typedef {import("./input_card.js").Context} Context */
/** @typedef {import("./pixels.js").Scale} Scale */
/** @typedef {import("./pixels.js").Fit} Fit */

const FITS = [
  { value: "contain", text: "show all" },
  { value: "cover", text: "fill, cut edges" },
  { value: "stretch", text: "stretch" },
];
const ORDERS = [
  { value: "rgb", text: "red first" },
  { value: "bgr", text: "blue first" },
];
const MOST_SIDE = 8192;

/**
 * @param {Context} context
 * @param {import("./kinds.js").ImageAxes} axes
 */
export function createImageEditor({ port, sizes, example, synthetic, changed }, axes) {
  const type = port.type.element_type ?? "float32";
  const recorded = example && !synthetic && !Array.isArray(example.data) ? decode(type, example.data) : null;
  const options = {
    fit: /** @type {Fit} */ ("contain"),
    scale: /** @type {Scale} */ (guessScale(type, recorded)),
    reversed: false,
    inverted: false,
  };
  const frame = () => ({ width: side(axes.width), height: side(axes.height) });
  const side = (/** @type {number} */ axis) => Math.min(MOST_SIDE, Math.max(1, sizes.get(port, axis)));
  const seen = element("canvas", { class: "picture seen", role: "img", "aria-label": "What the model is given" });
  const caption = element("figcaption", { class: "soft" });
  const sheet = createSheet(frame(), axes.channels === 1, update);

  function update() {
    render();
    changed();
  }

  function render() {
    const { width, height } = frame();
    Object.assign(seen, { width, height });
    caption.textContent = `The model sees ${width} × ${height}`;
    const pen = seen.getContext("2d", { willReadFrequently: true });
    if (!pen) {
      throw new InputProblem("this browser gives no canvas to draw on", "choose Values instead");
    }
    const at = placeIn(options.fit, sheet.canvas, { width, height });
    pen.fillStyle = sheet.paper();
    pen.fillRect(0, 0, width, height);
    pen.imageSmoothingQuality = "high";
    pen.drawImage(sheet.canvas, at.x, at.y, at.width, at.height);
    return pen.getImageData(0, 0, width, height).data;
  }

  function read() {
    const { width, height } = frame();
    const numbers = toNumbers(render(), width, height, axes, options);
    const dims = sizes.resolve(port) ?? [];
    const copies = countElements(dims) / numbers.length;
    if (!Number.isInteger(copies) || copies < 1) {
      throw new InputProblem(`a picture of ${width} × ${height} does not make [${dims.join(", ")}]`, "set every size to 1 or more");
    }
    return { dims, data: repeat(encode(type, numbers), copies) };
  }

  sizes.listeners.add(() => {
    sheet.reshape(frame());
    render();
  });
  const scales = Object.entries(SCALES).map(([value, text]) => ({ value, text }));
  const made = element("div", { class: "editor" });
  refill(
    made,
    element("div", { class: "stage" }, sheet.canvas, element("figure", {}, seen, caption)),
    element(
      "div",
      { class: "row bottom" },
      filePicker("Choose picture…", "image/*", (file) => void sheet.take(file)),
      element("button", { type: "button", click: sheet.clear }, "Clear"),
      field("Pen", sheet.penWidth),
      field("Ink", sheet.ink),
    ),
    element(
      "div",
      { class: "row bottom" },
      field("Fit", choice(FITS, options.fit, (value) => ((options.fit = /** @type {Fit} */ (value)), update()))),
      field("Scale", choice(scales, options.scale, (value) => ((options.scale = /** @type {Scale} */ (value)), update()))),
      axes.channels > 1
        ? field("Colours", choice(ORDERS, "rgb", (value) => ((options.reversed = value === "bgr"), update())))
        : null,
      field("Layout", element("output", { class: "mono still" }, axes.layout)),
    ),
    sizeFields(port, sizes, { [axes.height]: "Height", [axes.width]: "Width" }),
    sheet.problem,
  );
  acceptDrops(made, (file) => void sheet.take(file));
  made.addEventListener("paste", (event) => void sheet.paste(event));
  render();
  return { element: made, read, paste: sheet.paste };
}

/**
 * One picture in every place of the batch.
 *
 * @param {import("./bundle.js").NumericData} data
 * @param {number} copies
 */
function repeat(data, copies) {
  if (copies === 1) {
    return data;
  }
  const made = new /** @type {Float32ArrayConstructor} */ (data.constructor)(data.length * copies);
  Array.from({ length: copies }, (_, copy) => made.set(/** @type {Float32Array} */ (data), copy * data.length));
  return made;
}
