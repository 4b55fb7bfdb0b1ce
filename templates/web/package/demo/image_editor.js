/** The editor for pictures: a sheet to draw, drop or paste on, and how its pixels become the model's numbers. */

import { acceptDrops, element, field, filePicker, refill } from "./elements.js";
import { guessScale } from "./kinds.js";
import { decode, encode } from "./numbers.js";
import { createPixelControls } from "./pixel_controls.js";
import { placeIn, toNumbers } from "./pixels.js";
import { InputProblem } from "./problems.js";
import { countElements } from "./shapes.js";
import { createSheet } from "./sheet.js";
import { sizeFields } from "./size_fields.js";

/** @typedef {import("./input_card.js").Context} Context */
/** @typedef {import("./kinds.js").ImageAxes} ImageAxes */

/** Browsers refuse larger canvases. */
const MOST_SIDE = 8192;

/**
 * @param {Context} context
 * @param {ImageAxes} axes
 */
export function createImageEditor(context, axes) {
  const { port, sizes, changed } = context;
  const side = (/** @type {number} */ axis) => Math.min(MOST_SIDE, Math.max(1, sizes.get(port, axis)));
  const frame = () => ({ width: side(axes.width), height: side(axes.height) });
  const update = () => {
    render();
    changed();
  };
  const controls = createPixelControls(scaleOf(context), axes.channels > 1, update);
  const sheet = createSheet(frame(), axes.channels === 1, update);
  const seen = element("canvas", { class: "picture seen", role: "img", "aria-label": "What the model is given" });
  const caption = element("figcaption", { class: "soft" });

  function render() {
    const { width, height } = frame();
    caption.textContent = `The model sees ${width} × ${height}, ${axes.layout}`;
    return drawInto(seen, { width, height }, sheet, controls.options.fit);
  }

  function read() {
    const { width, height } = frame();
    const numbers = toNumbers(render(), width, height, axes, controls.options);
    const dims = sizes.resolve(port) ?? context.example?.dims ?? [];
    const copies = countElements(dims) / numbers.length;
    if (!Number.isInteger(copies) || copies < 1) {
      const what = `a picture of ${width} × ${height} does not fit [${dims.join(", ")}]`;
      throw new InputProblem(what, "set every size to 1 or more");
    }
    return { dims, data: encode(port.type.element_type ?? "float32", repeat(numbers, copies)) };
  }

  sizes.listeners.add(() => {
    sheet.reshape(frame());
    render();
  });
  const made = element("div", { class: "editor" });
  refill(
    made,
    stageOf(sheet.canvas, seen, caption),
    sheetControls(sheet),
    element("div", { class: "row bottom" }, ...controls.fields),
    sizeFields(port, sizes, titlesOf(axes)),
    sheet.problem,
  );
  acceptDrops(made, (file) => void sheet.take(file));
  render();
  return { element: made, read, paste: sheet.paste };
}

/**
 * Draw the sheet as the model sees it, and answer the pixels.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {{ width: number, height: number }} frame
 * @param {{ canvas: HTMLCanvasElement, paper: () => string }} sheet
 * @param {import("./pixels.js").Fit} fit
 */
function drawInto(canvas, { width, height }, sheet, fit) {
  Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  if (!pen) {
    throw new InputProblem("this browser has no canvas to draw on", "choose Values instead");
  }
  const at = placeIn(fit, sheet.canvas, { width, height });
  pen.fillStyle = sheet.paper();
  pen.fillRect(0, 0, width, height);
  pen.imageSmoothingQuality = "high";
  pen.drawImage(sheet.canvas, at.x, at.y, at.width, at.height);
  return pen.getImageData(0, 0, width, height).data;
}

/**
 * @param {HTMLCanvasElement} sheet
 * @param {HTMLCanvasElement} seen
 * @param {HTMLElement} caption
 */
function stageOf(sheet, seen, caption) {
  const hint = element("figcaption", { class: "soft" }, "Draw here, or drop or paste a picture");
  return element("div", { class: "stage" }, element("figure", {}, sheet, hint), element("figure", {}, seen, caption));
}

/** @param {ReturnType<typeof createSheet>} sheet */
function sheetControls(sheet) {
  return element(
    "div",
    { class: "row bottom" },
    filePicker("Choose picture…", "image/*", (file) => void sheet.take(file)),
    element("button", { type: "button", click: sheet.clear }, "Clear"),
    field("Pen", sheet.penWidth),
    field("Ink", sheet.ink),
  );
}

/** @param {Context} context */
function scaleOf({ port, example, synthetic }) {
  const type = port.type.element_type ?? "float32";
  const recorded = example && !synthetic && !Array.isArray(example.data) ? decode(example.type, example.data) : null;
  return guessScale(type, recorded);
}

/**
 * @param {ImageAxes} axes
 * @returns {Record<number, string>}
 */
function titlesOf({ layout, height, width }) {
  /** @type {Record<number, string>} */
  const titles = { [height]: "Height", [width]: "Width" };
  return layout.startsWith("N") ? { ...titles, 0: "Batch" } : titles;
}

/**
 * One picture in every place of the batch.
 *
 * @param {Float32Array} numbers
 * @param {number} copies
 */
function repeat(numbers, copies) {
  const made = new Float32Array(numbers.length * copies);
  for (let copy = 0; copy < copies; copy += 1) {
    made.set(numbers, copy * numbers.length);
  }
  return made;
}
