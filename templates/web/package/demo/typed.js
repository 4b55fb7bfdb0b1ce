/** Values that a person types or pastes: numbers, nested lists, text. Pure. */

import { InputProblem } from "./problems.js";

const WORDS = new Map([
  ["nan", NaN],
  ["inf", Infinity],
  ["infinity", Infinity],
  ["+inf", Infinity],
  ["+infinity", Infinity],
  ["-inf", -Infinity],
  ["-infinity", -Infinity],
  ["true", 1],
  ["false", 0],
]);
const WRONG_SHOWN = 20;

/** @typedef {{ numbers: number[], dims: number[] }} Typed */

/**
 * Numbers out of text: JSON lists (nested ones give the dimensions) or numbers between commas, spaces and line ends.
 *
 * @param {string} text
 * @returns {Typed}
 */
export function parseNumbers(text) {
  const trimmed = text.trim();
  if (!trimmed) {
    throw new InputProblem("no values are given", "type numbers, or fill the input with zeros, ones or random values");
  }
  return trimmed.startsWith("[") ? parseNested(trimmed) : parseFlat(trimmed);
}

/**
 * Labels for scores: one a line, or a JSON list, or a JSON object by index.
 *
 * @param {string} text
 * @returns {string[]}
 */
export function parseLabels(text) {
  const trimmed = text.trim();
  if (!/^[[{]/.test(trimmed)) {
    return trimmed ? trimmed.split(/\r?\n/).map((line) => line.trim()) : [];
  }
  try {
    const parsed = JSON.parse(trimmed);
    const entries = Array.isArray(parsed) ? parsed : indexed(parsed);
    return entries.map((entry) => (Array.isArray(entry) ? String(entry.at(-1)) : String(entry)));
  } catch {
    return trimmed.split(/\r?\n/);
  }
}

/**
 * Whole numbers of a text for a model of tokens or bytes, made as long as the model wants: cut, or filled up.
 *
 * @param {ArrayLike<number>} numbers
 * @param {number | null} length null leaves it as it is
 * @param {number} padding
 * @returns {number[]}
 */
export function fitLength(numbers, length, padding) {
  const made = Array.from(numbers);
  if (length === null) {
    return made.length ? made : [padding];
  }
  return made.length >= length ? made.slice(0, length) : [...made, ...Array(length - made.length).fill(padding)];
}

/**
 * The number that a recorded sample is filled up with: its last one, where it repeats; else 0.
 *
 * @param {ArrayLike<number> | null} values
 */
export function guessPadding(values) {
  const length = values?.length ?? 0;
  const last = values?.[length - 1];
  return values && length > 3 && last !== undefined && [2, 3].every((back) => values[length - back] === last)
    ? last
    : 0;
}

/**
 * @param {string} text
 * @returns {Typed}
 */
function parseNested(text) {
  const quoted = text.replace(/[+-]?\b(?:nan|inf|infinity)\b/gi, (word) => `"${word}"`);
  /** @type {unknown} */
  let parsed;
  try {
    parsed = JSON.parse(quoted);
  } catch (error) {
    throw new InputProblem(
      "the list cannot be read",
      `write it as JSON, such as [[1, 2], [3, 4]] (${error instanceof Error ? error.message : error})`,
    );
  }
  const dims = dimensionsOf(parsed);
  /** @type {number[]} */
  const numbers = [];
  collect(parsed, dims, 0, numbers);
  return { numbers, dims };
}

/**
 * @param {string} text
 * @returns {Typed}
 */
function parseFlat(text) {
  const numbers = text
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map(readNumber);
  return { numbers, dims: [numbers.length] };
}

/**
 * @param {unknown} value
 * @returns {number[]}
 */
function dimensionsOf(value) {
  return Array.isArray(value) ? [value.length, ...dimensionsOf(value[0])] : [];
}

/**
 * @param {unknown} value
 * @param {number[]} dims
 * @param {number} depth
 * @param {number[]} numbers
 */
function collect(value, dims, depth, numbers) {
  if (depth === dims.length) {
    numbers.push(readNumber(value));
    return;
  }
  if (!Array.isArray(value) || value.length !== dims[depth]) {
    throw new InputProblem("the lists are not all of the same length", "every row needs as many values as the first");
  }
  value.forEach((item) => collect(item, dims, depth + 1, numbers));
}

/** @param {unknown} value */
function readNumber(value) {
  const text = String(value);
  const number = WORDS.get(text.toLowerCase()) ?? (/^[+-]?[\d.]/.test(text) ? Number(text) : NaN);
  if (Number.isNaN(number) && text.toLowerCase() !== "nan") {
    throw new InputProblem(`“${text.slice(0, WRONG_SHOWN)}” is not a number`, "separate numbers by commas or spaces");
  }
  return number;
}

/**
 * @param {Record<string, unknown>} record
 * @returns {unknown[]}
 */
function indexed(record) {
  const keys = Object.keys(record);
  if (keys.every((key) => /^\d{1,7}$/.test(key))) {
    return Array.from({ length: Math.max(-1, ...keys.map(Number)) + 1 }, (_, index) => record[index] ?? "");
  }
  const byNumber = Object.entries(record).filter(([, value]) => Number.isInteger(value) && Number(value) >= 0);
  /** @type {string[]} */
  const labels = [];
  byNumber.forEach(([label, index]) => Number(index) < 1e7 && (labels[Number(index)] = label));
  return Array.from(labels, (label) => label ?? "");
}
