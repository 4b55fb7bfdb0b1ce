/** @file How far an output is from its reference: the same figures as in Python bundles, to the last bit. */

import { asDoubles, asItems, haveSameBytes, sum } from "./numbers.js";

const NEGLIGIBLE = 1e-6; // Errors up to here are rounding: for an output that small, ratios say nothing.
const LAST_STEP = 2 ** -23; // Of a 32-bit float, as a share of the greatest magnitude: rounding everywhere.
const LOW = 0.1; // The share of samples (at least one of several) that may stay below `low_sqnr_db`.
const TIE = 1e-6; // Scores that differ by less, relative to their magnitude, tie: rounding decides which is higher.
const MOST_CLASSES = 65_536; // Up to this length of the last axis, rows are compared by the index of their maximum.

const FLOATS = new Set(["float16", "float32", "float64"]);

/**
 * One output over all samples. Errors are in the output's own unit.
 *
 * `sqnr_db` holds the noise against the signal without its mean; `worst_sqnr_db` is that of the worst sample,
 * `low_sqnr_db` what all samples but a tenth reach. All are null without noise or without a signal, `cosine` when a norm
 * is zero, `top1_agreement` where the output has no rows of scores. `agreement` is the share of equal integers, booleans
 * and strings, null where there are none. `mismatch` says why outputs could not be compared.
 */
export class OutputFigures {
  /**
   * @param {string} name
   * @param {Partial<import("./golden.js").Reference>} [reference] what the recorded answers are like
   */
  constructor(name, reference = {}) {
    this.name = name;
    this.reference = { signal: null, signals: [], quiet_peak: 0, quantity: false, unjudged: "", ...reference };
    this.equal = true;
    /** @type {string | null} */
    this.mismatch = null;
    this.maxAbsolute = 0;
    this.maxRelative = 0;
    this.excess = 0;
    this.sumAbsolute = 0;
    this.count = 0;
    /** @type {number[]} */
    this.noises = [];
    this.power = 0;
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
    this.noises.push(0);
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

  /** Signal to noise over all samples, in decibels. */
  get sqnr_db() {
    return decibels(this.reference.signal ?? 0, sum(Float64Array.from(this.noises)));
  }

  /** Signal to noise that all samples reach but for a tenth, and at least one of several. */
  get low_sqnr_db() {
    const ordered = this.ratios().map((ratio) => ratio ?? Infinity).sort((one, other) => one - other);
    const at = Math.min(ordered.length - 1, Math.max(1, Math.floor(LOW * ordered.length)));
    return ordered.length && Number.isFinite(ordered[at]) ? ordered[at] : null;
  }

  /** Signal to noise of the worst sample. */
  get worst_sqnr_db() {
    const found = this.ratios().filter((ratio) => ratio !== null);
    return found.length ? Math.min(...found) : null;
  }

  ratios() {
    const { signals } = this.reference;
    return this.noises.slice(0, signals.length).map((noise, at) => decibels(signals[at], noise));
  }

  get cosine() {
    const norms = Math.sqrt(this.power) * Math.sqrt(this.energy);
    return norms ? this.dot / norms : null;
  }

  /** Share of rows whose highest score is at the same position. */
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
      return `${this.excess} of ${this.count} elements are out of tolerance, the largest error is ${this.maxAbsolute.toPrecision(3)}`;
    }
    if (this.agreement !== null && this.agreement < (tolerance.agreement ?? 1)) {
      const promise = (tolerance.agreement ?? null) === null ? "" : `, at least a share of ${tolerance.agreement} must be equal`;
      return `${this.exact - this.exactAgreed} of ${this.exact} values differ${promise}`;
    }
    return this.equal ? null : this.findNoise(tolerance);
  }

  /**
   * @param {import("./types.js").Tolerance} tolerance
   * @returns {string | null}
   */
  findNoise(tolerance) {
    const rounding = this.isRounding(tolerance);
    /** @type {readonly ("sqnr_db" | "low_sqnr_db" | "worst_sqnr_db" | "cosine" | "top1_agreement")[]} */
    const names = rounding ? ["top1_agreement"] : ["sqnr_db", "low_sqnr_db", "worst_sqnr_db", "cosine", "top1_agreement"];
    for (const name of names) {
      const [found, least] = [this[name], tolerance[name] ?? null];
      if (found !== null && least !== null && found < least) {
        return `${name} ${found.toPrecision(6)} (min ${least.toPrecision(6)})`;
      }
    }
    if (rounding || !this.isUnmeasured(tolerance)) return null;
    return `its largest error is ${this.maxAbsolute.toPrecision(3)}, and the reference has no signal to compare it with`;
  }

  /** @param {import("./types.js").Tolerance} tolerance */
  isRounding(tolerance) {
    const { quiet_peak: peak } = this.reference;
    return this.maxAbsolute <= Math.min(Math.max(NEGLIGIBLE, LAST_STEP * peak), allowed(tolerance, peak));
  }

  /**
   * Whether a ratio was promised that cannot be had.
   *
   * @param {import("./types.js").Tolerance} tolerance
   */
  isUnmeasured({ sqnr_db }) {
    return (sqnr_db ?? null) !== null && this.reference.signal === null && this.maxAbsolute > 0;
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
      low_sqnr_db: this.low_sqnr_db,
      worst_sqnr_db: this.worst_sqnr_db,
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
      return `shape [${actual.dims.join(", ")}] instead of [${reference.dims.join(", ")}]`;
    }
    if (actual.type !== reference.type) return `type ${actual.type} instead of ${reference.type}`;
    if (!FLOATS.has(reference.type)) {
      if (this.reference.quantity) this.addFinite(asDoubles(actual), asDoubles(reference), tolerance);
      return this.addExact(asItems(actual), asItems(reference));
    }
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
      return "NaN is at other positions";
    }
    if (
      !reference.every((value, at) =>
        Number.isFinite(value) ? Number.isFinite(actual[at]) : Object.is(value, actual[at]),
      )
    ) {
      return "infinity is at other positions";
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
    this.noises[this.noises.length - 1] += sum(error.map((value) => value * value));
    this.power += sum(reference.map((value) => value * value));
    this.energy += sum(actual.map((value) => value * value));
    this.dot += sum(actual.map((value, at) => value * reference[at]));
  }

  /**
   * Rows of at least two floating-point numbers along the last axis.
   *
   * @param {Float64Array} actual
   * @param {Float64Array} reference
   * @param {readonly number[]} dims
   */
  addTop(actual, reference, dims) {
    const count = dims.length < 2 ? 0 : dims[dims.length - 1];
    if (count < 2 || count > MOST_CLASSES) return;
    for (let at = 0; at < reference.length; at += count) {
      this.tops += 1;
      const [best, found] = [reference, actual].map((values) => reference[at + findTop(values, at, count)]);
      const near = Number.isFinite(best) ? TIE * Math.abs(best) : 0;
      if (Number.isNaN(best) || found >= best - near) this.sameTop += 1;
    }
  }
}

/**
 * The place of the highest score; NaN is never the highest.
 *
 * @param {Float64Array} values
 * @param {number} from
 * @param {number} count
 */
function findTop(values, from, count) {
  let [top, best] = [0, -Infinity];
  for (let place = 0; place < count; place++) {
    if (values[from + place] > best) [top, best] = [place, values[from + place]];
  }
  return top;
}

/**
 * @param {number} signal
 * @param {number} noise
 */
const decibels = (signal, noise) => (signal && noise ? 10 * (Math.log10(signal) - Math.log10(noise)) : null);

/**
 * The greatest error of an element whose reference is of this size.
 *
 * @param {import("./types.js").Tolerance} tolerance
 * @param {number} size
 */
function allowed({ absolute, relative }, size) {
  if (absolute === null || absolute === undefined || relative === null || relative === undefined) return Infinity;
  return absolute + relative * size;
}
