/** Views of an output: a number, a picture, a heat map, a curve, text, a table. */

import { choice, element, field, refill } from "./elements.js";
import { findPicture } from "./figures.js";
import { formatCount, formatNumber, plural, showName } from "./format.js";
import { bounds, heatColour, toHeat, toPixels } from "./pixels.js";
import { countElements } from "./shapes.js";
import { pictureOf, waveOf } from "./sample_view.js";

const ROWS = 12;
const COLUMNS = 8;
const TEXTS = 100;
const LONGEST_TEXT = 2000;
const LADDER_STEPS = 24;
const MOST_CHOICES = 512;
/** Browsers refuse larger canvases. */
const MOST_SIDE = 8192;

/** @param {number | undefined} value */
export function numberView(value) {
  return element("p", { class: "number" }, formatNumber(value));
}

/**
 * @param {Float64Array} numbers
 * @param {readonly number[]} dims
 */
export function pictureView(numbers, dims) {
  const found = findPicture(dims);
  if (!found || Math.max(found.width, found.height) > MOST_SIDE) {
    return heatView(numbers, dims);
  }
  const { width, height } = found;
  const area = width * height * found.channels;
  return sliced(dims.length === 4 ? [dims[0] ?? 1] : [], (at) => {
    const pixels = toPixels(numbers.subarray(at * area, (at + 1) * area), width, height, found);
    return pictureOf(pixels, width, height, "The output as a picture");
  });
}

/**
 * The last two axes as colours; the ones before them are chosen.
 *
 * @param {Float64Array} numbers
 * @param {readonly number[]} dims
 */
export function heatView(numbers, dims) {
  const height = Math.min(MOST_SIDE, dims.at(-2) ?? 1);
  const width = dims.at(-1) ?? 1;
  if (width > MOST_SIDE) {
    return tableView(numbers, dims);
  }
  const area = (dims.at(-2) ?? 1) * width;
  return sliced(dims.slice(0, -2), (at) => {
    const plane = numbers.subarray(at * area, at * area + height * width);
    return element("div", {}, pictureOf(toHeat(plane), width, height, "The output as a heat map"), scaleOf(plane));
  });
}

/**
 * @param {Float64Array} numbers
 * @param {readonly number[]} dims
 */
export function curveView(numbers, dims) {
  const length = dims.at(-1) ?? numbers.length;
  return sliced(dims.slice(0, -1), (at) => waveOf(numbers.subarray(at * length, (at + 1) * length)));
}

/** @param {readonly string[]} texts */
export function textView(texts) {
  const items = texts.slice(0, TEXTS).map((text) => element("li", {}, showName(String(text), LONGEST_TEXT)));
  const rest = texts.length - items.length;
  return element(
    "ul",
    { class: "texts" },
    ...items,
    rest > 0 ? element("li", { class: "soft" }, `… ${plural(rest, "more")}`) : null,
  );
}

/**
 * The first values, in rows of the last axis.
 *
 * @param {Float64Array} numbers
 * @param {readonly number[]} dims
 */
export function tableView(numbers, dims) {
  const columns = Math.max(1, dims.length > 1 ? (dims.at(-1) ?? 1) : Math.min(COLUMNS, numbers.length));
  const rows = Math.min(ROWS, Math.ceil(numbers.length / columns));
  const shown = Math.min(COLUMNS, columns);
  const lines = Array.from({ length: rows }, (_, row) => {
    const cells = Array.from(numbers.subarray(row * columns, Math.min(numbers.length, row * columns + shown)));
    const head = element("th", { scope: "row" }, dims.length > 1 ? placeOf(row, dims) : `[${row * columns}]`);
    return element("tr", {}, head, ...cells.map((value) => element("td", { class: "num" }, formatNumber(value))));
  });
  const rest = numbers.length - rows * shown;
  const table = element("table", { class: "cells mono" }, element("tbody", {}, ...lines));
  return element(
    "div",
    {},
    element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "First values" }, table),
    rest > 0
      ? element(
          "p",
          { class: "soft" },
          `The first ${formatCount(numbers.length - rest)} of ${plural(numbers.length, "value")}.`,
        )
      : null,
  );
}

/**
 * A view of one slice, with a list to choose its place on each leading axis that has more than one.
 *
 * @param {readonly number[]} leading
 * @param {(at: number) => HTMLElement} make
 */
function sliced(leading, make) {
  const at = leading.map(() => 0);
  const body = element("div", {});
  const show = () => refill(body, make(leading.reduce((place, size, axis) => place * size + (at[axis] ?? 0), 0)));
  const fields = leading.flatMap((size, axis) => {
    const options = Array.from({ length: Math.min(size, MOST_CHOICES) }, (_, index) => ({
      value: String(index),
      text: `${index} of ${size}`,
    }));
    const pick = choice(options, "0", (value) => ((at[axis] = Number(value)), show()));
    return size > 1 ? [field(`Axis ${axis}`, pick)] : [];
  });
  show();
  return element("div", {}, body, fields.length ? element("div", { class: "row bottom" }, ...fields) : null);
}

/** @param {Float64Array} plane */
function scaleOf(plane) {
  const { least, most } = bounds(plane);
  const ladder = new Uint8ClampedArray(LADDER_STEPS * 4);
  Array.from({ length: LADDER_STEPS }, (_, step) => ladder.set(heatColour(step / (LADDER_STEPS - 1)), step * 4));
  const canvas = pictureOf(ladder, LADDER_STEPS, 1, "Colours from least to most");
  canvas.className = "ladder";
  return element("p", { class: "scale soft" }, formatNumber(least), canvas, formatNumber(most));
}

/**
 * Where a row stands, as an index of all axes but the last.
 *
 * @param {number} row
 * @param {readonly number[]} dims
 */
function placeOf(row, dims) {
  const leading = dims.slice(0, -1);
  const place = leading.map((size, axis) => Math.floor(row / countElements(leading.slice(axis + 1))) % size);
  return `[${place.join(", ")}]`;
}
