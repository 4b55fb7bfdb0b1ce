/** The editor for any tensor: numbers typed or pasted, or filled in, with a field for each free dimension. */

import { element, field, refill } from "./elements.js";
import { formatCount } from "./format.js";
import { decode, encode, fill } from "./numbers.js";
import { InputProblem } from "./problems.js";
import { countElements, fitDimensions } from "./shapes.js";
import { sizeFields } from "./size_fields.js";
import { parseNumbers } from "./typed.js";

/** @typedef {import("./input_card.js").Context} Context */
/** @typedef {"zeros" | "ones" | "random"} Filling */

/** More values than this are not written into the text area: a person could not read them. */
const READABLE = 2048;
const DIGITS = 7;

/** @param {Context} context */
export function createValuesEditor({ port, sizes, example, changed }) {
  const type = port.type.element_type ?? "float32";
  /** @type {{ how: Filling, seed: number } | null} */
  let filled = null;
  let seed = 1;
  const area = element("textarea", { rows: 5, class: "mono", spellcheck: false, "aria-label": "Values" });
  area.addEventListener("input", () => {
    filled = null;
    changed();
  });
  const free = element("input", { class: "mono", value: (example?.dims ?? [1]).join(", ") });
  const fields = sizeFields(port, sizes);

  function dimensions() {
    return (
      sizes.resolve(port) ??
      free.value
        .split(/[\s,]+/)
        .filter(Boolean)
        .map(Number)
    );
  }

  /** @param {Filling} how */
  function fillWith(how) {
    filled = { how, seed: (seed += 1) };
    showFilling();
    changed();
  }

  function showFilling() {
    if (!filled) {
      return;
    }
    const count = countElements(dimensions());
    const few = count <= READABLE;
    area.value = few ? writeNumbers(type, fill(type, count, filled.how, filled.seed)) : "";
    area.placeholder = few ? "" : `${formatCount(count)} values: ${filled.how}. Type to replace them.`;
  }

  sizes.listeners.add(showFilling);
  if (example && !Array.isArray(example.data) && example.data.length <= READABLE) {
    area.value = writeNumbers(type, example.data);
  } else {
    fillWith("random");
  }

  function read() {
    if (filled) {
      const dims = dimensions();
      return { dims, data: fill(type, countElements(dims), filled.how, filled.seed) };
    }
    const { numbers, dims } = parseNumbers(area.value);
    const given = sizes.resolve(port);
    const fitted = given
      ? fitDimensions(port.type.shape ?? null, given, dims, numbers.length)
      : freeDimensions(dims, numbers.length);
    if (!fitted) {
      const wanted = dimensions();
      throw new InputProblem(
        `${formatCount(numbers.length)} values were given, [${wanted.join(", ")}] takes ${formatCount(countElements(wanted))}`,
        "type as many values, or change the sizes",
      );
    }
    return { dims: fitted, data: encode(type, numbers) };
  }

  /**
   * @param {number[]} nested
   * @param {number} count
   */
  function freeDimensions(nested, count) {
    return nested.length > 1 ? nested : countElements(dimensions()) === count ? dimensions() : null;
  }

  const buttons = /** @type {Filling[]} */ (["zeros", "ones", "random"]).map((how) =>
    element("button", { type: "button", click: () => fillWith(how) }, how.charAt(0).toUpperCase() + how.slice(1)),
  );
  const made = element("div", { class: "editor" });
  refill(
    made,
    area,
    element("div", { class: "row" }, element("span", { class: "label" }, "Fill with"), ...buttons),
    fields ?? (port.type.shape ? null : field("Shape", free)),
  );
  return { element: made, read };
}

/**
 * @param {string} type
 * @param {import("./bundle.js").NumericData} data
 */
function writeNumbers(type, data) {
  const whole = type.includes("int") || type === "bool";
  return Array.from(decode(type, data), (value) => String(whole ? value : Number(value.toPrecision(DIGITS)))).join(
    ", ",
  );
}
