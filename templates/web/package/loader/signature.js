/** @file The model's types as types of JavaScript and of the web runtime. */

/**
 * @typedef {object} Element
 * @property {string} type the runtime's name
 * @property {string[]} arrays names of the typed arrays that hold it, the usual one first; none for strings
 * @property {number} perItem elements to an item of the array
 */

/** @type {(type: string, ...arrays: string[]) => Element} */
const element = (type, ...arrays) => ({ type, arrays, perItem: 1 });

/** @type {Record<string, Element>} */
const ELEMENTS = {
  float32: element("float32", "Float32Array"),
  float64: element("float64", "Float64Array"),
  float16: element("float16", "Uint16Array", "Float16Array"),
  int8: element("int8", "Int8Array"),
  uint8: element("uint8", "Uint8Array", "Uint8ClampedArray"),
  int16: element("int16", "Int16Array"),
  uint16: element("uint16", "Uint16Array"),
  int32: element("int32", "Int32Array"),
  uint32: element("uint32", "Uint32Array"),
  int64: element("int64", "BigInt64Array"),
  uint64: element("uint64", "BigUint64Array"),
  bool: element("bool", "Uint8Array"),
  str: element("string"),
  int4: { type: "int4", arrays: ["Uint8Array"], perItem: 2 },
  uint4: { type: "uint4", arrays: ["Uint8Array"], perItem: 2 },
};

/**
 * How the web runtime represents a value of this type; null when it does not support it.
 *
 * @param {Readonly<import("./types.js").ValueType>} type
 */
export function findElement(type) {
  const name = type.element_type ?? "";
  return type.kind === "tensor" && Object.hasOwn(ELEMENTS, name) ? ELEMENTS[name] : null;
}

/**
 * `float32[batch, 3]`, `sequence(map(int64, float32[]))`: a type as a person reads it.
 *
 * @param {Readonly<import("./types.js").ValueType>} type
 * @returns {string}
 */
export function describeType(type) {
  const inner = type.element ? describeType(type.element) : "?";
  if (type.kind === "map") return `map(${type.key_type}, ${inner})`;
  if (type.kind === "sequence" || type.kind === "optional") return `${type.kind}(${inner})`;
  const shape = type.shape ? type.shape.map((size) => size ?? "?").join(", ") : "…";
  return `${type.kind === "sparse_tensor" ? "sparse " : ""}${type.element_type}[${shape}]`;
}

/** @param {readonly import("./types.js").Port[]} ports */
export function usesHalf(ports) {
  return ports.some((port) => port.type.element_type === "float16");
}

const BY_TYPE = new Map(Object.values(ELEMENTS).map((known) => [known.type, known]));

/**
 * Items of the typed array that holds a tensor.
 *
 * @param {string} type the runtime's name
 * @param {readonly number[]} dims
 */
export function countItems(type, dims) {
  const count = dims.reduce((product, size) => product * size, 1);
  return Math.ceil(count / (BY_TYPE.get(type)?.perItem ?? 1));
}

/**
 * Bytes as the typed array that the runtime uses for the type.
 *
 * @param {string} type the runtime's name
 * @param {ArrayBuffer} bytes
 * @param {number} items
 * @returns {import("./types.js").NumericData}
 */
export function viewBytes(type, bytes, items) {
  const scope = /** @type {any} */ (globalThis);
  const name = BY_TYPE.get(type)?.arrays[0] ?? "Uint8Array";
  const View = type === "float16" ? (scope.Float16Array ?? Uint16Array) : scope[name];
  return new View(bytes, 0, items);
}
