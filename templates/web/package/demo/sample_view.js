/** What an input holds, to look at: a picture, a wave, or its first values. */

import { element } from "./elements.js";
import { formatNumber, plural, showName } from "./format.js";
import { decode } from "./numbers.js";
import { toPixels } from "./pixels.js";
import { countElements } from "./shapes.js";

/** @typedef {import("./bundle.js").Tensor} Tensor */
/** @typedef {import("./kinds.js").ImageAxes} ImageAxes */

const FIRST = 24;
const WAVE_FROM = 256;

/**
 * @param {Tensor} tensor
 * @param {ImageAxes | null} image where its axes are, if it is an image
 */
export function previewOf(tensor, image) {
  if (Array.isArray(tensor.data)) {
    const lines = tensor.data.slice(0, FIRST).map((text) => element("li", {}, showName(text, 200)));
    return element("ul", { class: "texts" }, ...lines);
  }
  const numbers = decode(tensor.type, tensor.data);
  const height = image && tensor.dims[image.height];
  const width = image && tensor.dims[image.width];
  if (image && height && width) {
    return pictureOf(toPixels(numbers, width, height, image), width, height, "What the model is given");
  }
  const long = numbers.length >= WAVE_FROM && (tensor.dims.at(-1) ?? 0) >= WAVE_FROM && tensor.type.startsWith("float");
  return element("div", {}, long ? waveOf(numbers) : null, firstValues(numbers, tensor.dims));
}

/**
 * Pixels on a canvas of their own size; the style sheet makes it as large as there is room for.
 *
 * @param {Uint8ClampedArray} pixels
 * @param {number} width
 * @param {number} height
 * @param {string} label
 */
export function pictureOf(pixels, width, height, label) {
  const canvas = element("canvas", { class: "picture", role: "img", "aria-label": label, width, height });
  const image = new ImageData(new Uint8ClampedArray(pixels), width, height);
  canvas.getContext("2d")?.putImageData(image, 0, 0);
  return canvas;
}

/**
 * The least and the greatest value of each stretch, as a filled line.
 *
 * @param {ArrayLike<number>} numbers
 */
export function waveOf(numbers) {
  const width = 800;
  const height = 120;
  const canvas = element("canvas", {
    class: "wave",
    role: "img",
    "aria-label": "The values as a curve",
    width,
    height,
  });
  const context = canvas.getContext("2d");
  if (context) {
    drawWave(context, numbers, width, height, getComputedStyle(document.body).getPropertyValue("--accent"));
  }
  return canvas;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {ArrayLike<number>} numbers
 * @param {number} width
 * @param {number} height
 * @param {string} colour
 */
function drawWave(context, numbers, width, height, colour) {
  let least = 0;
  let most = 0;
  for (const value of Array.from(numbers)) {
    if (Number.isFinite(value)) {
      least = Math.min(least, value);
      most = Math.max(most, value);
    }
  }
  const range = most - least || 1;
  const y = (/** @type {number} */ value) => height - 4 - ((value - least) / range) * (height - 8);
  context.fillStyle = colour || "#2563d9";
  for (let x = 0; x < width; x += 1) {
    const from = Math.floor((x / width) * numbers.length);
    const to = Math.max(from + 1, Math.floor(((x + 1) / width) * numbers.length));
    let low = Infinity;
    let high = -Infinity;
    for (let at = from; at < to; at += 1) {
      low = Math.min(low, numbers[at] ?? 0);
      high = Math.max(high, numbers[at] ?? 0);
    }
    context.fillRect(x, y(high), 1, Math.max(1.5, y(low) - y(high)));
  }
}

/**
 * @param {Float64Array} numbers
 * @param {readonly number[]} dims
 */
function firstValues(numbers, dims) {
  const shown = Array.from(numbers.subarray(0, FIRST), formatNumber).join("  ");
  const rest = countElements(dims) - FIRST;
  return element(
    "p",
    { class: "first mono" },
    shown,
    rest > 0 ? element("span", { class: "soft" }, `  … ${plural(rest, "more value")}`) : null,
  );
}
