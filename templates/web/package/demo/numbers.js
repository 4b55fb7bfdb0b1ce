/** Element types: typed arrays, plain numbers, and the way between them. Pure. */

/** @typedef {import("./bundle.js").Data} Data */
/** @typedef {import("./bundle.js").NumericData} NumericData */

/**
 * `store` makes the array that the runtime takes, `least` and `most` bound whole numbers.
 *
 * @typedef {{ store: (count: number) => NumericData, kind: "float" | "integer" | "bool", least: number, most: number }} Element
 */

/** @type {ReadonlyMap<string, Element>} */
const ELEMENTS = new Map([
  ["float32", floating((count) => new Float32Array(count))],
  ["float64", floating((count) => new Float64Array(count))],
  ["float16", floating((count) => new Uint16Array(count))],
  ["int8", whole((count) => new Int8Array(count), -(2 ** 7), 2 ** 7 - 1)],
  ["uint8", whole((count) => new Uint8Array(count), 0, 2 ** 8 - 1)],
  ["int16", whole((count) => new Int16Array(count), -(2 ** 15), 2 ** 15 - 1)],
  ["uint16", whole((count) => new Uint16Array(count), 0, 2 ** 16 - 1)],
  ["int32", whole((count) => new Int32Array(count), -(2 ** 31), 2 ** 31 - 1)],
  ["uint32", whole((count) => new Uint32Array(count), 0, 2 ** 32 - 1)],
  ["int64", whole((count) => new BigInt64Array(count), Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)],
  ["uint64", whole((count) => new BigUint64Array(count), 0, Number.MAX_SAFE_INTEGER)],
  ["bool", { store: (count) => new Uint8Array(count), kind: "bool", least: 0, most: 1 }],
]);

/**
 * What is known of an element type; null for one that this page cannot edit.
 *
 * @param {string | null | undefined} type
 */
export function elementOf(type) {
  return ELEMENTS.get(type ?? "") ?? null;
}

/** @param {string | null | undefined} type */
export function isFloat(type) {
  return elementOf(type)?.kind === "float";
}

/** @param {string | null | undefined} type */
export function isInteger(type) {
  return elementOf(type)?.kind === "integer";
}

/**
 * Plain numbers as the array that the runtime takes. Whole numbers are rounded and kept within the type's bounds.
 *
 * @param {string} type
 * @param {ArrayLike<number>} numbers
 * @returns {NumericData}
 */
export function encode(type, numbers) {
  const known = elementOf(type);
  if (!known) {
    throw new TypeError(`no array holds ${type}`);
  }
  const data = known.store(numbers.length);
  const convert = converter(type, known);
  for (let index = 0; index < numbers.length; index += 1) {
    data[index] = /** @type {never} */ (convert(numbers[index] ?? 0));
  }
  return data;
}

/**
 * The runtime's values as plain numbers, for display: 64-bit integers lose their last digits beyond 2^53.
 *
 * @param {string} type
 * @param {NumericData} data
 * @returns {Float64Array}
 */
export function decode(type, data) {
  const half = type === "float16" && data instanceof Uint16Array;
  const brain = type === "bfloat16" && data instanceof Uint16Array;
  return Float64Array.from(/** @type {ArrayLike<number>} */ (data), (value) =>
    half ? fromHalf(value) : brain ? fromBrain(value) : Number(value),
  );
}

/**
 * Zeros, ones, or random numbers that are the same for the same seed.
 *
 * @param {string} type
 * @param {number} count
 * @param {"zeros" | "ones" | "random"} how
 * @param {number} seed
 */
export function fill(type, count, how, seed) {
  const next = generator(seed);
  const most = isInteger(type) ? 10 : type === "bool" ? 2 : 1;
  const draw = isFloat(type) ? next : () => Math.floor(next() * most);
  return encode(
    type,
    Float64Array.from({ length: count }, () => (how === "zeros" ? 0 : how === "ones" ? 1 : draw())),
  );
}

/**
 * The bits of a 16-bit float nearest to a number, ties to even.
 *
 * @param {number} value
 */
export function toHalf(value) {
  SINGLE[0] = value;
  const bits = WORD[0] ?? 0;
  const sign = (bits >>> 16) & 0x8000;
  const size = bits & 0x7fffffff;
  if (size > 0x7f800000) {
    return sign | 0x7e00;
  }
  if (size >= 0x477ff000) {
    return sign | 0x7c00;
  }
  if (size < 0x38800000) {
    return sign | roundEven(Math.abs(SINGLE[0] ?? 0) * 2 ** 24);
  }
  const rebased = size - 0x38000000;
  return sign | ((rebased + 0xfff + ((rebased >>> 13) & 1)) >>> 13);
}

/** @param {number} bits */
export function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) {
    return fraction ? NaN : sign * Infinity;
  }
  return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * fraction * 2 ** -24;
}

const SINGLE = new Float32Array(1);
const WORD = new Uint32Array(SINGLE.buffer);

/** @param {number} bits */
function fromBrain(bits) {
  WORD[0] = bits << 16;
  return SINGLE[0] ?? 0;
}

/** @param {number} value */
function roundEven(value) {
  const low = Math.floor(value);
  const rest = value - low;
  return rest > 0.5 || (rest === 0.5 && low % 2 === 1) ? low + 1 : low;
}

/**
 * @param {string} type
 * @param {Element} known
 * @returns {(value: number) => number | bigint}
 */
function converter(type, known) {
  if (known.kind === "float") {
    return type === "float16" ? toHalf : (value) => value;
  }
  const { least, most } = known;
  const bound = (/** @type {number} */ value) => Math.min(most, Math.max(least, Math.round(value) || 0));
  return type.endsWith("64") ? (value) => BigInt(bound(value)) : bound;
}

/**
 * The mulberry32 generator: 32 bits of state are plenty to try a model with.
 *
 * @param {number} seed
 */
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * @param {(count: number) => NumericData} store
 * @returns {Element}
 */
function floating(store) {
  return { store, kind: "float", least: -Infinity, most: Infinity };
}

/**
 * @param {(count: number) => NumericData} store
 * @param {number} least
 * @param {number} most
 * @returns {Element}
 */
function whole(store, least, most) {
  return { store, kind: "integer", least, most };
}
