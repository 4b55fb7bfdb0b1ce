/** @file How far an output is from its reference: the figures of the package's Python sibling, to the last bit. */

const NEGLIGIBLE = 1e-6; // Errors up to here are rounding: where a whole output is that small, ratios say nothing.

const FLOATS = new Set(["float16", "float32", "float64"]);

/**
 * One output over all samples. Errors are in the output's own unit.
 *
 * `sqnr_db` is null when all is equal to the bit or the reference is all zero, `cosine` when a norm is zero,
 * `top1_agreement` where the output is no vector of scores. `agreement` is the share of equal integers, booleans and
 * strings, null where there are none; of them nothing else is measured. `mismatch` says why outputs could not be compared.
 */
export class OutputFigures {
  /** @param {string} name */
  constructor(name) {
    this.name = name;
    this.equal = true;
    /** @type {string | null} */
    this.mismatch = null;
    this.maxAbsolute = 0;
    this.maxRelative = 0;
    this.excess = 0;
    this.sumAbsolute = 0;
    this.count = 0;
    this.noise = 0;
    this.signal = 0;
    this.energy = 0;
    this.dot = 0;
    this.sameTop = 0;
    this.tops = 0;
    this.exact = 0;
    this.exactAgreed = 0;
  }

  /**
   * Take one sample's value in; `where` names the sample in a mismatch.
   *
   * @param {import("./golden.js").Tensor} actual
   * @param {import("./golden.js").Tensor} reference
   * @param {import("./types.js").Tolerance} tolerance
   * @param {string} where
   */
  add(actual, reference, tolerance, where) {
    const problem = this.addTensor(actual, reference, tolerance);
    if (problem !== null) this.refuse(`${where}: ${problem}`);
  }

  /** @param {string} mismatch */
  refuse(mismatch) {
    this.equal = false;
    this.mismatch ??= mismatch;
  }

  get meanAbsolute() {
    return this.count ? this.sumAbsolute / this.count : 0;
  }

  /** Signal to noise in decibels. */
  get sqnr_db() {
    return this.signal && this.noise ? 10 * Math.log10(this.signal / this.noise) : null;
  }

  get cosine() {
    const norms = Math.sqrt(this.signal) * Math.sqrt(this.energy);
    return norms ? this.dot / norms : null;
  }

  /** Share of rows whose highest score stands at the same place. */
  get top1_agreement() {
    return this.tops ? this.sameTop / this.tops : null;
  }

  /** Share of equal integers, booleans and strings. */
  get agreement() {
    return this.exact ? this.exactAgreed / this.exact : null;
  }

  /**
   * Why this output is out of tolerance; null when it is within.
   *
   * @param {import("./types.js").Tolerance | null} tolerance null promises nothing but type and shape
   */
  findFault(tolerance) {
    if (tolerance?.judged === false) return null;
    if (this.mismatch !== null || tolerance === null) return this.mismatch;
    if (this.excess) {
      return `${this.excess} of ${this.count} elements are off, the worst by ${this.maxAbsolute.toPrecision(3)}`;
    }
    if (this.agreement !== null && this.agreement < (tolerance.agreement ?? 1)) {
      const promise = (tolerance.agreement ?? null) === null ? "" : `, at least ${tolerance.agreement} of them equal was promised`;
      return `${this.exact - this.exactAgreed} of ${this.exact} values differ${promise}`;
    }
    const rounding = this.maxAbsolute <= Math.min(NEGLIGIBLE, tolerance.absolute ?? NEGLIGIBLE);
    /** @type {("sqnr_db" | "cosine" | "top1_agreement")[]} */
    const names = rounding ? ["top1_agreement"] : ["sqnr_db", "cosine", "top1_agreement"];
    for (const name of names) {
      const [found, least] = [this[name], tolerance[name] ?? null];
      if (!this.equal && found !== null && least !== null && found < least) {
        return `${name} is ${found.toPrecision(6)}, at least ${least.toPrecision(6)} was promised`;
      }
    }
    return null;
  }

  /** @returns {import("./types.js").OutputFigures} */
  toJSON() {
    return {
      name: this.name,
      equal: this.equal,
      max_absolute: this.maxAbsolute,
      mean_absolute: this.meanAbsolute,
      max_relative: this.maxRelative,
      cosine: this.cosine,
      sqnr_db: this.sqnr_db,
      top1_agreement: this.top1_agreement,
      agreement: this.agreement,
      mismatch: this.mismatch,
    };
  }

  /**
   * @param {import("./golden.js").Tensor} actual
   * @param {import("./golden.js").Tensor} reference
   * @param {import("./types.js").Tolerance} tolerance
   */
  addTensor(actual, reference, tolerance) {
    if (
      actual.dims.length !== reference.dims.length ||
      actual.dims.some((size, axis) => size !== reference.dims[axis])
    ) {
      return `shape [${actual.dims.join(", ")}] in place of [${reference.dims.join(", ")}]`;
    }
    if (actual.type !== reference.type) return `type ${actual.type} in place of ${reference.type}`;
    if (!FLOATS.has(reference.type)) return this.addExact(asItems(actual), asItems(reference));
    const wanted = asDoubles(reference);
    const found = haveSameBytes(actual.data, reference.data) ? wanted : asDoubles(actual);
    this.addTop(found, wanted, reference.dims);
    return this.addNumbers(found, wanted, tolerance);
  }

  /**
   * @param {ArrayLike<unknown>} actual
   * @param {ArrayLike<unknown>} reference
   */
  addExact(actual, reference) {
    for (let at = 0; at < reference.length; at++) {
      if (actual[at] === reference[at]) this.exactAgreed += 1;
      else this.equal = false;
    }
    this.exact += reference.length;
    return null;
  }

  /**
   * @param {Float64Array} actual
   * @param {Float64Array} reference
   * @param {import("./types.js").Tolerance} tolerance
   */
  addNumbers(actual, reference, tolerance) {
    if (!reference.every((value, at) => Number.isNaN(value) === Number.isNaN(actual[at]))) {
      return "NaN stands at other places";
    }
    if (
      !reference.every((value, at) =>
        Number.isFinite(value) ? Number.isFinite(actual[at]) : Object.is(value, actual[at]),
      )
    ) {
      return "infinity stands at other places";
    }
    const finite = reference.every(Number.isFinite);
    const keep = (/** @type {Float64Array} */ values) => values.filter((_, at) => Number.isFinite(reference[at]));
    if (finite) this.addFinite(actual, reference, tolerance);
    else this.addFinite(keep(actual), keep(reference), tolerance);
    return null;
  }

  /**
   * @param {Float64Array} actual
   * @param {Float64Array} reference
   * @param {import("./types.js").Tolerance} tolerance
   */
  addFinite(actual, reference, tolerance) {
    if (!reference.length) return;
    const error = reference.map((value, at) => Math.abs(actual[at] - value));
    for (let at = 0; at < error.length; at++) {
      const size = Math.abs(reference[at]);
      if (error[at]) this.equal = false;
      if (error[at] > allowed(tolerance, size)) this.excess += 1;
      if (error[at] > this.maxAbsolute) this.maxAbsolute = error[at];
      if (size > 0 && error[at] / size > this.maxRelative) this.maxRelative = error[at] / size;
    }
    this.count += reference.length;
    this.sumAbsolute += sum(error);
    this.noise += sum(error.map((value) => value * value));
    this.signal += sum(reference.map((value) => value * value));
    this.energy += sum(actual.map((value) => value * value));
    this.dot += sum(actual.map((value, at) => value * reference[at]));
  }

  /**
   * Rows of at least two floating-point scores along the last axis of a matrix.
   *
   * @param {Float64Array} actual
   * @param {Float64Array} reference
   * @param {readonly number[]} dims
   */
  addTop(actual, reference, dims) {
    if (dims.length !== 2 || dims[1] < 2) return;
    for (let at = 0; at < reference.length; at += dims[1]) {
      this.tops += 1;
      if (findTop(actual, at, dims[1]) === findTop(reference, at, dims[1])) this.sameTop += 1;
    }
  }
}

/**
 * The place of the highest score; NaN counts as the highest.
 *
 * @param {Float64Array} values
 * @param {number} from
 * @param {number} count
 */
function findTop(values, from, count) {
  let top = from;
  for (let at = from; at < from + count; at++) {
    if (Number.isNaN(values[at])) return at - from;
    if (values[at] > values[top]) top = at;
  }
  return top - from;
}

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
 * The greatest error of an element whose reference is of this size.
 *
 * @param {import("./types.js").Tolerance} tolerance
 * @param {number} size
 */
function allowed({ absolute, relative }, size) {
  return absolute === null || relative === null ? Infinity : absolute + relative * size;
}

/**
 * @param {any} actual
 * @param {any} reference
 */
function haveSameBytes(actual, reference) {
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
function asItems({ type, data, dims }) {
  return type.endsWith("int4") ? unpack(/** @type {any} */ (data), type, dims) : /** @type {any} */ (data);
}

/**
 * @param {import("./golden.js").Tensor} tensor
 * @returns {Float64Array}
 */
function asDoubles({ type, data }) {
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
