/** @file What tensors hold as numbers, and sums of them. */

const BLOCK = 128;
const LANES = 8;

/**
 * Pairwise, in NumPy's own order of additions (Higham, "The accuracy of floating point summation", 1993): the error
 * grows with the logarithm of the count, and the figures are Python's.
 *
 * @param {Float64Array} values
 * @param {number} [from]
 * @param {number} [count]
 * @returns {number}
 */
export function sum(values, from = 0, count = values.length) {
  if (count > BLOCK) {
    const half = Math.floor(count / 2);
    const first = half - (half % LANES);
    return sum(values, from, first) + sum(values, from + first, count - first);
  }
  const lanes = new Float64Array(LANES);
  const whole = count - (count % LANES);
  for (let at = 0; at < whole; at++) lanes[at % LANES] += values[from + at];
  const [a, b, c, d, e, f, g, h] = lanes;
  let total = a + b + (c + d) + (e + f + (g + h));
  for (let at = whole; at < count; at++) total += values[from + at];
  return total;
}

/**
 * @param {any} actual
 * @param {any} reference
 */
export function haveSameBytes(actual, reference) {
  if (actual.byteLength !== reference.byteLength) return false;
  const [one, other] = [actual, reference].map(
    ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength),
  );
  return one.every((byte, at) => byte === other[at]);
}

/**
 * Integers, booleans and strings, one by one.
 *
 * @param {import("./golden.js").Tensor} tensor
 * @returns {ArrayLike<unknown>}
 */
export function asItems({ type, data, dims }) {
  return type.endsWith("int4") ? unpack(/** @type {any} */ (data), type, dims) : /** @type {any} */ (data);
}

/**
 * @param {import("./golden.js").Tensor} tensor
 * @returns {Float64Array}
 */
export function asDoubles({ type, data }) {
  const items = /** @type {any} */ (data);
  if (type === "float16" && !isFloat16Array(items)) return Float64Array.from(items, decodeHalf);
  return Float64Array.from(items, Number);
}

/** @param {any} items */
const isFloat16Array = (items) => items[Symbol.toStringTag] === "Float16Array";

/**
 * A number of 16 bits: 1 of sign, 5 of exponent, 10 of fraction.
 *
 * @param {number} bits
 */
export function decodeHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : (fraction / 1024) * 2 ** -14);
}

/**
 * Two to a byte, the first one low.
 *
 * @param {Uint8Array} bytes
 * @param {string} type
 * @param {readonly number[]} dims
 */
function unpack(bytes, type, dims) {
  const count = dims.reduce((product, size) => product * size, 1);
  const signed = type === "int4";
  return Float64Array.from({ length: count }, (_, at) => {
    const code = (bytes[at >> 1] >> (at % 2 ? 4 : 0)) & 15;
    return signed && code > 7 ? code - 16 : code;
  });
}
