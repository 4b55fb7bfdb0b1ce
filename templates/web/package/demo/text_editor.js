/** The editor for text: strings as they are, or as the bytes or token ids that a model of integers takes. */

import { acceptDrops, choice, element, field, filePicker, refill } from "./elements.js";
import { formatCount, plural } from "./format.js";
import { encode } from "./numbers.js";
import { countElements } from "./shapes.js";
import { InputProblem } from "./problems.js";
import { fitLength, guessPadding, parseNumbers } from "./typed.js";

/** @typedef {import("./input_card.js").Context} Context */

const EXAMPLE = 'def greet(name):\n    return f"Hello, {name}"\n';
/** Of a file only so much is read: no model takes more in one call. */
const MOST_BYTES = 4_000_000;

/** @param {Context} context */
export function createTextEditor(context) {
  return context.port.type.element_type === "str" ? createStringEditor(context) : createByteEditor(context);
}

/** @param {Context} context */
function createStringEditor({ port, sizes, example, changed }) {
  const area = element("textarea", { rows: 5, "aria-label": "Text", input: changed });
  area.value = Array.isArray(example?.data) ? example.data.join("\n") : "";
  const single = countElements((port.type.shape ?? [null]).map((size) => (typeof size === "number" ? size : 0))) === 1;

  function read() {
    const shape = port.type.shape ?? [null];
    const data = single ? [area.value] : area.value.split(/\r?\n/);
    const axis = shape.findIndex((size) => typeof size !== "number");
    const dims = shape.map((size, index) => (typeof size === "number" ? size : index === axis ? data.length : 1));
    const others = countElements(dims.filter((_, index) => index !== axis));
    const fitted = axis >= 0 && data.length % others === 0 ? dims.with(axis, data.length / others) : dims;
    if (countElements(fitted) !== data.length) {
      throw new InputProblem(
        `${plural(data.length, "line")} of text were given, [${fitted.join(", ")}] takes ${formatCount(countElements(fitted))}`,
        "write one string a line",
      );
    }
    return { dims: fitted, data };
  }

  void sizes;
  const note = single ? null : element("p", { class: "soft" }, "One string a line.");
  return { element: element("div", { class: "editor" }, area, note), read };
}

/** @param {Context} context */
function createByteEditor({ port, sizes, example, changed }) {
  const type = port.type.element_type ?? "int32";
  const last = (port.type.shape?.length ?? 1) - 1;
  const fixed = port.type.shape?.[last];
  /** @type {{ name: string, bytes: Uint8Array } | null} */
  let file = null;
  let mode = "bytes";
  const area = element("textarea", { rows: 6, class: "mono", spellcheck: false, "aria-label": "Text" }, EXAMPLE);
  const note = element("p", { class: "soft" });
  const padding = element("input", { type: "number", step: 1, class: "short", input: update });
  padding.value = String(example && !Array.isArray(example.data) ? guessPadding(Array.from(example.data, Number)) : 0);
  area.addEventListener("input", () => {
    file = null;
    update();
  });

  function numbers() {
    if (file) {
      return file.bytes;
    }
    return mode === "bytes" ? new TextEncoder().encode(area.value) : parseNumbers(area.value).numbers;
  }

  function update() {
    note.textContent = describe();
    changed();
  }

  function describe() {
    try {
      const count = numbers().length;
      const what = `${file ? `${file.name.slice(0, 60)}: ` : ""}${plural(count, mode === "bytes" ? "byte" : "number")}`;
      const room = typeof fixed === "number" ? fixed : null;
      return room === null
        ? what
        : count > room
          ? `${what}, of which the first ${formatCount(room)} are used`
          : `${what}, padded to ${formatCount(room)}`;
    } catch (error) {
      return error instanceof Error ? error.message : "";
    }
  }

  /** @param {File} picked */
  async function take(picked) {
    file = { name: picked.name, bytes: new Uint8Array(await picked.slice(0, MOST_BYTES).arrayBuffer()) };
    area.value = new TextDecoder().decode(file.bytes.subarray(0, 2000));
    update();
  }

  function read() {
    const fitted = fitLength(numbers(), typeof fixed === "number" ? fixed : null, Number(padding.value) || 0);
    const dims = (port.type.shape ?? [null]).map((size, axis) =>
      axis === last ? fitted.length : typeof size === "number" ? size : 1,
    );
    if (typeof fixed !== "number") {
      sizes.set(port, last, fitted.length);
    }
    const copies = countElements(dims) / fitted.length;
    return { dims, data: encode(type, Array(copies).fill(fitted).flat()) };
  }

  const modes = [
    { value: "bytes", text: "as UTF-8 bytes" },
    { value: "ids", text: "as numbers" },
  ];
  const made = element("div", { class: "editor" });
  refill(
    made,
    area,
    note,
    element(
      "div",
      { class: "row bottom" },
      filePicker("Choose file…", "", (picked) => void take(picked)),
      field(
        "Text is read",
        choice(modes, mode, (value) => ((mode = value), (file = null), update())),
      ),
      typeof fixed === "number" ? field("Fill up with", padding) : null,
    ),
  );
  acceptDrops(made, (dropped) => void take(dropped));
  note.textContent = describe();
  return { element: made, read };
}
