/** Inputs for the tests, written briefly. */

/**
 * @param {string} name
 * @param {string | null} type
 * @param {readonly (number | string | null)[] | null} shape
 * @param {string} [kind]
 */
export function port(name, type, shape, kind = "tensor") {
  return { name, type: { kind, element_type: type, shape }, optional: false };
}
