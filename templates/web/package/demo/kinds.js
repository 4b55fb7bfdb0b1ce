/** Which editors suit an input, judged by its type, its shape and its name; the best one first. Pure. */

import { elementOf, isFloat, isInteger } from "./numbers.js";

/** @typedef {import("./bundle.js").Port} Port */
/** @typedef {"image" | "audio" | "text" | "values"} Kind */
/** @typedef {{ layout: "NCHW" | "NHWC" | "CHW" | "HWC", channels: 1 | 3 | 4, height: number, width: number }} ImageAxes */

const IMAGE_NAME = /image|img|pixel|picture|photo|frame|digit/i;
const AUDIO_NAME = /audio|wave|speech|sound|signal|pcm/i;
const TEXT_NAME = /byte|token|text|char|ids?$|sentence|prompt|query|input_ids/i;
const NO_TEXT_NAME = /mask|type_id|position|label|length|size|index/i;
/** Sides of a picture; a feature map's are mostly shorter. */
const LEAST_SIDE = 8;
/** Samples of sound: a quarter of a second at 16 kHz. */
const LEAST_SOUND = 4000;
const LEAST_NAMED_SOUND = 256;
const LEAST_TEXT = 16;
const CHANNELS = [1, 3, 4];

/**
 * The editors that suit an input; empty for what no editor can make (sequences, packed numbers).
 *
 * @param {Port} port
 * @param {readonly number[] | null} example dimensions in a recorded sample, which say what free axes mostly are
 * @returns {Kind[]}
 */
export function chooseEditors(port, example) {
  const type = port.type.element_type;
  if (port.type.kind !== "tensor" || (type !== "str" && !elementOf(type))) {
    return [];
  }
  if (type === "str") {
    return ["text"];
  }
  /** @type {Kind[]} */
  const first = [];
  /** @type {Kind[]} */
  const later = [];
  if (findImage(port, example)) {
    first.push("image");
  }
  const sound = judgeSound(port, example);
  if (sound) {
    (sound === "sure" ? first : later).push("audio");
  }
  if (mayBeText(port, example)) {
    (NO_TEXT_NAME.test(port.name) ? later : first).push("text");
  }
  return [...first, "values", ...later];
}

/**
 * Where an image's axes are; null for what is no image.
 *
 * @param {Port} port
 * @param {readonly number[] | null} example
 * @returns {ImageAxes | null}
 */
export function findImage(port, example) {
  const dims = knownDimensions(port, example);
  if (!dims || (!isFloat(port.type.element_type) && !isInteger(port.type.element_type))) {
    return null;
  }
  if (dims.length === 4) {
    return imageAt(dims, 1, 2, "NCHW") ?? imageAt(dims, 3, 1, "NHWC");
  }
  if (dims.length !== 3) {
    return null;
  }
  const found = imageAt(dims, 0, 1, "CHW") ?? imageAt(dims, 2, 0, "HWC");
  return found && (found.channels > 1 || isSquare(dims, found) || IMAGE_NAME.test(port.name)) ? found : null;
}

/**
 * How pixels of recorded samples were scaled, as far as their range tells; samples that were made from a seed tell
 * nothing.
 *
 * @param {string} type
 * @param {ArrayLike<number> | null} values
 * @returns {"unit" | "signed" | "imagenet" | "bytes"}
 */
export function guessScale(type, values) {
  if (!isFloat(type)) {
    return "bytes";
  }
  let least = 0;
  let most = 0;
  for (const value of Array.from(values ?? [])) {
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  if (most > 4) {
    return "bytes";
  }
  if (least >= 0) {
    return "unit";
  }
  return least < -1.01 || most > 1.01 ? "imagenet" : "signed";
}

/**
 * @param {readonly (number | null)[]} dims
 * @param {number} channel
 * @param {number} height
 * @param {ImageAxes["layout"]} layout
 * @returns {ImageAxes | null}
 */
function imageAt(dims, channel, height, layout) {
  const channels = dims[channel];
  if (!isChannels(channels) || !isSide(dims[height]) || !isSide(dims[height + 1])) {
    return null;
  }
  return { layout, channels, height, width: height + 1 };
}

/**
 * @param {number | null | undefined} size
 * @returns {size is 1 | 3 | 4}
 */
function isChannels(size) {
  return CHANNELS.includes(size ?? 0);
}

/** @param {number | null | undefined} size */
function isSide(size) {
  return size === null || (size ?? 0) >= LEAST_SIDE;
}

/**
 * @param {readonly (number | null)[]} dims
 * @param {ImageAxes} axes
 */
function isSquare(dims, axes) {
  return dims[axes.height] !== null && dims[axes.height] === dims[axes.width];
}

/**
 * @param {Port} port
 * @param {readonly number[] | null} example
 * @returns {"sure" | "perhaps" | null}
 */
function judgeSound(port, example) {
  const dims = knownDimensions(port, example);
  if (!dims?.length || dims.length > 3 || !isFloat(port.type.element_type)) {
    return null;
  }
  const length = port.type.shape?.at(-1);
  const free = typeof length !== "number";
  const known = dims.at(-1) ?? 0;
  const plain = dims.slice(0, -1).every((size) => size === null || size === 1);
  const named = AUDIO_NAME.test(port.name);
  if (!plain || (!free && known < (named ? LEAST_NAMED_SOUND : LEAST_SOUND))) {
    return null;
  }
  return named || known >= LEAST_SOUND ? "sure" : dims.length === 3 ? null : "perhaps";
}

/**
 * @param {Port} port
 * @param {readonly number[] | null} example
 */
function mayBeText(port, example) {
  const dims = knownDimensions(port, example);
  if (!dims?.length || dims.length > 2 || !isInteger(port.type.element_type)) {
    return false;
  }
  const length = port.type.shape?.at(-1);
  return typeof length !== "number" || length >= LEAST_TEXT || (TEXT_NAME.test(port.name) && length > 1);
}

/**
 * Fixed sizes as they are; free ones as in the example, else null.
 *
 * @param {Port} port
 * @param {readonly number[] | null} example
 * @returns {(number | null)[] | null}
 */
function knownDimensions(port, example) {
  const shape = port.type.shape;
  if (!shape) {
    return example ? [...example] : null;
  }
  return shape.map((size, axis) => (typeof size === "number" ? size : (example?.[axis] ?? null)));
}
