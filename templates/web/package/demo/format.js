/** How numbers, sizes, names and types are written for a person. Pure. */

/** @typedef {import("./bundle.js").ValueType} ValueType */

const LONGEST = 64;
const DIGITS = 5;
const GROUPED = new Intl.NumberFormat("en");
const UNITS = /** @type {const} */ ([
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
]);

/**
 * A name from the model as it may be shown: what does not print (line ends, marks of direction, lone surrogates) is
 * escaped, and the middle of a long name is left out.
 *
 * @param {string} text
 * @param {number} [longest]
 */
export function showName(text, longest = LONGEST) {
  const clean = text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, escapeCharacter);
  const half = Math.floor((longest - 1) / 2);
  return clean.length <= longest ? clean : `${clean.slice(0, half)}…${clean.slice(-half)}`;
}

/** @param {number} bytes */
export function formatBytes(bytes) {
  const [size, unit] = UNITS.find(([least]) => bytes >= least) ?? [1, bytes === 1 ? "byte" : "bytes"];
  const value = bytes / size;
  return `${size === 1 ? value : value.toFixed(value < 100 ? 1 : 0)} ${unit}`;
}

/** @param {number} seconds */
export function formatSeconds(seconds) {
  return seconds < 1 ? formatMilliseconds(seconds * 1000) : `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
}

/** @param {number} milliseconds */
export function formatMilliseconds(milliseconds) {
  const digits = milliseconds < 1 ? 2 : milliseconds < 100 ? 1 : 0;
  return `${milliseconds.toFixed(digits)} ms`;
}

/** @param {number} count */
export function formatCount(count) {
  return GROUPED.format(count);
}

/**
 * @param {number} count
 * @param {string} noun
 */
export function plural(count, noun) {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * A number in few digits: whole numbers as they are, others with five significant digits.
 *
 * @param {number | bigint | null | undefined} value
 */
export function formatNumber(value) {
  if (value === null || value === undefined) {
    return "–";
  }
  if (typeof value === "bigint" || (Number.isInteger(value) && Math.abs(value) < 1e9)) {
    return String(value).replace("-", "−");
  }
  if (!Number.isFinite(value)) {
    return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  }
  const size = Math.abs(value);
  const text = size < 1e-3 || size >= 1e6 ? value.toExponential(2) : String(Number(value.toPrecision(DIGITS)));
  return text.replace(/-/g, "−").replace("e+", "e");
}

/**
 * `float32[batch, 3, 224, 224]`: one type as a person reads it.
 *
 * @param {ValueType} type
 * @returns {string}
 */
export function describeType(type) {
  const inner = () => (type.element ? describeType(type.element) : "?");
  if (type.kind === "map") {
    return `map(${type.key_type ?? "?"}, ${inner()})`;
  }
  if (type.kind === "sequence" || type.kind === "optional") {
    return `${type.kind}(${inner()})`;
  }
  return `${type.element_type ?? "?"}${describeShape(type.shape ?? null)}`;
}

/** @param {readonly (number | string | null)[] | null} shape */
export function describeShape(shape) {
  if (!shape) {
    return "[…]";
  }
  return `[${shape.map((size) => (typeof size === "string" ? showName(size, 24) : (size ?? "?"))).join(", ")}]`;
}

/** @param {string} character */
function escapeCharacter(character) {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
