/** Shapes with free dimensions, and the sizes that a person gives them. Pure. */

/** @typedef {readonly (number | string | null)[]} Shape */
/** @typedef {import("./bundle.js").Port} Port */

const UNKNOWN = "?";

/** @param {readonly number[]} dims */
export function countElements(dims) {
  return dims.reduce((product, size) => product * size, 1);
}

/**
 * The sizes of free dimensions. A symbol means one size wherever it stands, in every input; an axis without a name, or
 * with a name that the example gives two sizes to, stands for itself.
 */
export class Sizes {
  /**
   * @param {readonly Port[]} ports
   * @param {(name: string) => readonly number[] | null} example the dimensions of an input in a recorded sample
   */
  constructor(ports, example) {
    /** @type {Map<string, number>} */
    this.values = new Map();
    /** @type {Set<() => void>} */
    this.listeners = new Set();
    this.torn = findTorn(ports, example);
    for (const { port, axis } of freeAxes(ports)) {
      const size = example(port.name)?.[axis] ?? 1;
      this.values.set(this.key(port, axis), Math.max(1, size));
    }
  }

  /**
   * The name under which the size of an axis is kept; axes of one key have one size.
   *
   * @param {Port} port
   * @param {number} axis
   */
  key(port, axis) {
    const symbol = port.type.shape?.[axis];
    return typeof symbol === "string" && !this.torn.has(symbol) ? `symbol ${symbol}` : `axis ${axis} of ${port.name}`;
  }

  /**
   * @param {Port} port
   * @param {number} axis
   */
  get(port, axis) {
    const size = port.type.shape?.[axis];
    return typeof size === "number" ? size : (this.values.get(this.key(port, axis)) ?? 1);
  }

  /**
   * @param {Port} port
   * @param {number} axis
   * @param {number} size
   */
  set(port, axis, size) {
    const key = this.key(port, axis);
    if (Number.isInteger(size) && size >= 0 && this.values.get(key) !== size) {
      this.values.set(key, size);
      this.listeners.forEach((listener) => listener());
    }
  }

  /**
   * The dimensions of an input as they are now; null when even the rank is unknown.
   *
   * @param {Port} port
   */
  resolve(port) {
    return port.type.shape?.map((_, axis) => this.get(port, axis)) ?? null;
  }
}

/**
 * Dimensions for values that were typed in: those of nested lists where they fit the shape, else the sizes set, with a
 * single free axis taking what remains. Null when nothing fits.
 *
 * @param {Shape | null} shape
 * @param {readonly number[] | null} sizes
 * @param {readonly number[]} nested
 * @param {number} count
 * @returns {number[] | null}
 */
export function fitDimensions(shape, sizes, nested, count) {
  if (!shape || !sizes) {
    return [...nested];
  }
  if (
    nested.length === shape.length &&
    shape.every((size, axis) => typeof size !== "number" || size === nested[axis])
  ) {
    return [...nested];
  }
  if (countElements(sizes) === count) {
    return [...sizes];
  }
  const free = shape.flatMap((size, axis) => (typeof size === "number" ? [] : [axis]));
  const axis = free.length === 1 ? free[0] : undefined;
  if (axis === undefined) {
    return null;
  }
  const others = countElements(sizes.filter((_, index) => index !== axis));
  const rest = count / others;
  return Number.isInteger(rest) ? sizes.map((size, index) => (index === axis ? rest : size)) : null;
}

/** @param {readonly Port[]} ports */
function freeAxes(ports) {
  return ports.flatMap((port) =>
    (port.type.shape ?? []).flatMap((size, axis) => (typeof size === "number" ? [] : [{ port, axis, size }])),
  );
}

/**
 * Symbols that cannot mean one size: exporters write `?` for every axis that they do not know.
 *
 * @param {readonly Port[]} ports
 * @param {(name: string) => readonly number[] | null} example
 */
function findTorn(ports, example) {
  /** @type {Map<string, number>} */
  const seen = new Map();
  const torn = new Set([UNKNOWN]);
  for (const { port, axis, size } of freeAxes(ports)) {
    const found = example(port.name)?.[axis];
    if (typeof size === "string" && found !== undefined) {
      if (seen.has(size) && seen.get(size) !== found) {
        torn.add(size);
      }
      seen.set(size, found);
    }
  }
  return torn;
}
