/** @file Checks inputs before the runtime gets them: names, types, sizes and fixed dimensions. */

import { InputError } from "./errors.js";
import { describeType, findElement } from "./signature.js";

/**
 * @typedef {object} Place one input, with what is known of it worked out once
 * @property {string} name
 * @property {import("./types.js").Port} port
 * @property {boolean} optional
 * @property {import("./signature.js").Element} element
 * @property {readonly import("./types.js").Dimension[] | null} shape
 * @property {number[] | null} fixed the dimensions, when all are fixed
 * @property {number} known product of those that are
 * @property {number} open index of the only one that is not; -1 when there is none or more
 * @property {import("./types.js").FixedSize[]} pinned by axis: what the model leaves free and this bundle was fixed to
 */

/**
 * @typedef {object} Runtime what binding needs of the runtime
 * @property {any} Tensor its class
 * @property {(tensor: object) => boolean} owns whether a tensor lies in this instance's device memory
 * @property {readonly string[]} inputNames what the open session takes
 */

/**
 * A function that converts a caller's value for the runtime. It raises `InputError`.
 *
 * @param {readonly import("./types.js").Port[]} ports
 * @param {Runtime} runtime
 * @param {readonly import("./types.js").FixedSize[]} [fixedSizes]
 * @returns {(inputs: import("./types.js").Inputs) => Record<string, any>}
 */
export function makeBinder(ports, runtime, fixedSizes = []) {
  const places = ports.map((port) => makePlace(port, fixedSizes));
  return (inputs) => {
    if (typeof inputs !== "object" || inputs === null || ArrayBuffer.isView(inputs) || Array.isArray(inputs)) {
      throw new InputError("inputs are given by name", { hint: `give an object: ${listPorts(ports)}` });
    }
    const feeds = Object.create(null);
    let found = 0;
    for (const place of places) {
      const value = Object.hasOwn(inputs, place.name) ? inputs[place.name] : undefined;
      if (value === undefined) {
        if (place.optional) continue;
        refuseUnknown(inputs, ports); // A misspelt name explains why another one is missing.
        throw missing(place);
      }
      found += 1;
      feeds[place.name] = bind(place, value, runtime);
    }
    if (Object.keys(inputs).length !== found) refuseUnknown(inputs, ports);
    return feeds;
  };
}

/**
 * @param {import("./types.js").Port} port
 * @param {readonly import("./types.js").FixedSize[]} fixedSizes
 * @returns {Place}
 */
function makePlace(port, fixedSizes) {
  const { shape } = port.type;
  const element = findElement(port.type);
  if (!element) {
    throw new InputError(`input ${quote(port.name)} is of a type that onnxruntime-web does not take`, {
      why: describeType(port.type),
    });
  }
  const open = (shape ?? []).flatMap((size, axis) => (typeof size === "number" ? [] : [axis]));
  const sizes = (shape ?? []).filter((size) => typeof size === "number");
  return {
    name: port.name,
    port,
    optional: port.optional,
    element,
    shape,
    fixed: shape && !open.length ? sizes : null,
    known: sizes.reduce((product, size) => product * size, 1),
    open: open.length === 1 ? open[0] : -1,
    pinned: findPinned(port, fixedSizes),
  };
}

/**
 * @param {import("./types.js").Port} port
 * @param {readonly import("./types.js").FixedSize[]} fixedSizes
 */
function findPinned(port, fixedSizes) {
  /** @type {import("./types.js").FixedSize[]} */
  const pinned = [];
  for (const size of fixedSizes) {
    const axes = Object.hasOwn(size.axes, port.name) ? size.axes[port.name] : [];
    for (const axis of axes) pinned[axis] = size;
  }
  return pinned;
}

/**
 * @param {Place} place
 * @param {any} value
 * @param {Runtime} runtime
 */
function bind(place, value, runtime) {
  if (place.optional && !runtime.inputNames.includes(place.name)) throw notOverridable(place);
  if (typeof value?.location === "string" && value.location !== "cpu") return bindResident(place, value, runtime);
  const plain = ArrayBuffer.isView(value) || Array.isArray(value);
  const data = plain ? value : value?.data;
  checkData(place, data, value);
  const dims = plain ? inferDims(place, data.length) : checkDims(place, value.dims, data.length);
  return new runtime.Tensor(place.element.type, adopt(data), dims);
}

/**
 * @param {Place} place
 * @param {any} tensor
 * @param {Runtime} runtime
 */
function bindResident(place, tensor, runtime) {
  if (tensor.location === "none") throw wrong(place, "was disposed of", "", "keep it until it has been used");
  if (!runtime.owns(tensor)) {
    const hint = "read it with getData() first, and give the data with its dims";
    throw wrong(place, "lies in the memory of another device", "it is not an output of a model of this runtime", hint);
  }
  if (tensor.type !== place.element.type) throw wrongType(place, tensor.type);
  checkShape(place, tensor.dims);
  return tensor;
}

/**
 * @param {Place} place
 * @param {any} data
 * @param {unknown} value
 */
function checkData(place, data, value) {
  const { arrays, type } = place.element;
  if (type === "string") {
    if (!Array.isArray(data)) throw wrongType(place, kindOf(data ?? value));
    const bad = data.findIndex((item) => typeof item !== "string");
    if (bad >= 0) throw wrongType(place, `an array with ${kindOf(data[bad])} at ${bad}`);
  } else if (!arrays.includes(data?.[Symbol.toStringTag])) throw wrongType(place, kindOf(data ?? value));
}

/**
 * The runtime supports typed arrays of its own window only; one of another frame is read through a local one.
 *
 * @param {any} data
 */
function adopt(data) {
  if (Array.isArray(data)) return data;
  const Local = /** @type {any} */ (globalThis)[data[Symbol.toStringTag]];
  return data instanceof Local ? data : new Local(data.buffer, data.byteOffset, data.length);
}

/**
 * @param {Place} place
 * @param {number} length
 */
function inferDims(place, length) {
  if (place.fixed) {
    if (length === itemsOf(place, place.known)) return place.fixed;
    throw wrongCount(place, length, place.fixed);
  }
  if (place.open < 0 || !place.shape || place.element.perItem > 1) {
    const hint = `give { data, dims }: the model takes ${describeType(place.port.type)}`;
    throw wrong(place, "needs its dimensions", "they do not follow from the number of elements", hint);
  }
  const size = place.known ? length / place.known : 0;
  if (!Number.isInteger(size)) throw wrongCount(place, length, place.shape);
  return place.shape.map((dimension, axis) => (axis === place.open ? size : dimension));
}

/**
 * @param {Place} place
 * @param {any} dims
 * @param {number} length
 */
function checkDims(place, dims, length) {
  if (!Array.isArray(dims) || !dims.every((size) => Number.isSafeInteger(size) && size >= 0)) {
    throw wrong(place, "has no proper dims", `they are ${kindOf(dims)}`, "give { data, dims: [1, 2, …] }");
  }
  checkShape(place, dims);
  const count = dims.reduce((product, size) => product * size, 1);
  if (length !== itemsOf(place, count)) throw wrongCount(place, length, dims);
  return dims;
}

/**
 * One name may have two sizes: the runtime allows it, and so does the model's author.
 *
 * @param {Place} place
 * @param {readonly number[]} dims
 */
function checkShape(place, dims) {
  const { shape } = place;
  if (!shape) return;
  if (dims.length !== shape.length) {
    throw misshapen(place, dims, `it has ${dims.length} dimensions, not ${shape.length}`);
  }
  for (let axis = 0; axis < shape.length; axis++) {
    if (typeof shape[axis] === "number" && shape[axis] !== dims[axis]) {
      throw misshapen(place, dims, `axis ${axis} is ${dims[axis]}, not ${shape[axis]}`, place.pinned[axis]);
    }
  }
}

/**
 * @param {Place} place
 * @param {number} count
 */
const itemsOf = (place, count) => Math.ceil(count / place.element.perItem);

/** @param {string} name */
export const quote = (name) => JSON.stringify(name);

/** @param {any} value */
function kindOf(value) {
  if (value === null || value === undefined) return "nothing";
  return value[Symbol.toStringTag] ?? (Array.isArray(value) ? "an Array" : `a ${typeof value}`);
}

/** @param {readonly import("./types.js").Port[]} ports */
const listPorts = (ports) => ports.map((port) => `${quote(port.name)}: ${describeType(port.type)}`).join("; ");

/**
 * @param {Place} place
 * @param {string} what
 * @param {string} why
 * @param {string} hint
 */
const wrong = (place, what, why, hint) => new InputError(`input ${quote(place.name)} ${what}`, { why, hint });

/** @param {Place} place */
const missing = (place) => wrong(place, "is missing", "", `give ${describeType(place.port.type)}`);

/** @param {Place} place */
function notOverridable(place) {
  const why = "onnxruntime-web cannot replace a value that the model has a default for";
  return wrong(place, "cannot be given here", why, "leave it out");
}

/**
 * @param {Place} place
 * @param {string} found
 */
function wrongType(place, found) {
  const wanted = place.element.arrays.length ? place.element.arrays.join(" or ") : "an Array of strings";
  const hint = `give ${wanted} for ${describeType(place.port.type)}`;
  return wrong(place, "has the wrong type", `it is ${found}, the model takes ${place.element.type}`, hint);
}

/**
 * @param {Place} place
 * @param {number} length
 * @param {readonly import("./types.js").Dimension[]} dims
 */
function wrongCount(place, length, dims) {
  const pinned = [...new Set(place.pinned)].filter(Boolean).map(tellPinned);
  const why = [`${length} do not fill [${dims.map((size) => size ?? "?").join(", ")}]`, ...pinned].join("; ");
  return wrong(place, "has the wrong number of elements", why, `the model takes ${describeType(place.port.type)}`);
}

/**
 * @param {Place} place
 * @param {readonly number[]} dims
 * @param {string} why
 * @param {import("./types.js").FixedSize} [pinned] the model leaves the size open, and this bundle does not
 */
function misshapen(place, dims, why, pinned) {
  const what = `has shape [${dims.join(", ")}]`;
  if (!pinned) return wrong(place, what, why, `the model takes ${describeType(place.port.type)}`);
  const again = pinned.by === "model" ? "" : ", or build the bundle again with --dim or --shape";
  return wrong(place, what, `${why}; ${tellPinned(pinned)}`, `give that size${again}`);
}

const FIXED_BY = {
  target: "by the target that it was built for",
  user: "when it was built",
  model: "because the original model ran at no other size that was tried",
};

/** @param {import("./types.js").FixedSize} pinned */
function tellPinned({ name, size, by }) {
  return `this bundle was fixed to ${quote(name)} = ${size} ${FIXED_BY[by]}`;
}

/**
 * @param {import("./types.js").Inputs} inputs
 * @param {readonly import("./types.js").Port[]} ports
 */
function refuseUnknown(inputs, ports) {
  const name = Object.keys(inputs).find((key) => !ports.some((port) => port.name === key));
  if (name === undefined) return; // An optional input given as undefined.
  throw new InputError(`no input is named ${quote(name)}`, { hint: `the inputs are ${listPorts(ports)}` });
}
