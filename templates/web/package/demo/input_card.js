/** One input of the model: its recorded value, or one that a person makes with an editor that suits it. */

import { createAudioEditor } from "./audio_editor.js";
import { element, refill, segments } from "./elements.js";
import { describeShape, describeType, showName } from "./format.js";
import { createImageEditor } from "./image_editor.js";
import { chooseEditors, findImage } from "./kinds.js";
import { InputProblem } from "./problems.js";
import { previewOf } from "./sample_view.js";
import { createTextEditor } from "./text_editor.js";
import { createValuesEditor } from "./values_editor.js";

/** @typedef {import("./bundle.js").Given} Given */
/** @typedef {import("./bundle.js").Port} Port */
/** @typedef {import("./bundle.js").Tensor} Tensor */
/** @typedef {import("./kinds.js").Kind} Kind */
/** @typedef {"sample" | "omitted" | Kind} Mode */

/**
 * What an editor needs: the input, the sizes of free dimensions, a recorded value, and whom to tell of a change.
 *
 * @typedef {{ port: Port, sizes: import("./shapes.js").Sizes, example: Tensor | null, synthetic: boolean,
 *   changed: () => void }} Context
 * @typedef {{ element: HTMLElement, read: () => Given, paste?: (event: ClipboardEvent) => boolean }} Editor
 */

/** @type {Readonly<Record<Mode, string>>} */
const TITLES = {
  sample: "Sample",
  image: "Picture",
  audio: "Sound",
  text: "Text",
  values: "Values",
  omitted: "Leave out",
};

/** @param {Context} context */
export function createInputCard(context) {
  const { port, example } = context;
  const kinds = chooseEditors(port, example?.dims ?? null);
  const image = findImage(port, example?.dims ?? null);
  /** @type {Map<Kind, Editor>} */
  const editors = new Map();
  let sample = example;
  /** @type {Mode} */
  let mode = example ? "sample" : port.optional ? "omitted" : (kinds[0] ?? "sample");
  const body = element("div", {});
  const tabs = element("div", {});

  /** @type {Mode[]} */
  const modes = [
    ...(example ? /** @type {Mode[]} */ (["sample"]) : []),
    ...kinds,
    ...(port.optional ? /** @type {Mode[]} */ (["omitted"]) : []),
  ];

  /** @param {Mode} chosen */
  function show(chosen) {
    mode = chosen;
    const options = modes.map((value) => ({ value, text: TITLES[value] }));
    const legend = `How input ${showName(port.name)} is given`;
    const picked = (/** @type {string} */ value) => (showBody(/** @type {Mode} */ (value)), context.changed());
    refill(tabs, options.length > 1 ? segments(legend, options, mode, picked) : null);
    showBody(mode);
  }

  /** @param {Mode} chosen */
  function showBody(chosen) {
    mode = chosen;
    refill(body, bodyOf());
  }

  function bodyOf() {
    if (mode === "sample") {
      return sample
        ? previewOf(sample, image)
        : element("p", { class: "empty" }, "There is no recorded value for this input, and no editor for its type.");
    }
    return mode === "omitted"
      ? element("p", { class: "empty" }, "The model uses its own default.")
      : editorOf(mode).element;
  }

  /** @param {Kind} kind */
  function editorOf(kind) {
    const found = editors.get(kind) ?? makeEditor(kind, context, image);
    editors.set(kind, found);
    return found;
  }

  /** @returns {Given | null} */
  function read() {
    if (mode === "omitted") {
      return null;
    }
    if (mode !== "sample") {
      return editorOf(mode).read();
    }
    if (!sample) {
      throw new InputProblem(`input ${showName(port.name)} has no value`, "choose another way to give it");
    }
    // A copy: a runtime in a worker may take the array with it, and the sample is to run again.
    return { dims: sample.dims, data: sample.data.slice() };
  }

  /** @param {Tensor | null} tensor the recorded value of another sample */
  function showSample(tensor) {
    sample = tensor;
    show(tensor ? "sample" : port.optional ? "omitted" : mode);
  }

  show(mode);
  const title = element("h4", {}, element("bdi", { class: "mono" }, showName(port.name)));
  const type = element("span", { class: "type mono" }, describeType(port.type));
  const card = element("section", { class: "port" }, element("div", { class: "port-head" }, title, type), tabs, body);
  card.setAttribute("aria-label", `Input ${showName(port.name)}, ${describeShape(port.type.shape ?? null)}`);
  return {
    element: card,
    read,
    showSample,
    /** Hands a picture from the clipboard to the image editor; answers whether it was taken. */
    paste: (/** @type {ClipboardEvent} */ event) => takePaste(event),
    isSample: () => mode === "sample",
  };

  /** @param {ClipboardEvent} event */
  function takePaste(event) {
    const holds = Array.from(event.clipboardData?.files ?? []).some(({ type: kind }) => kind.startsWith("image/"));
    if (!holds || !kinds.includes("image")) {
      return false;
    }
    if (mode !== "image") {
      show("image");
    }
    return editorOf("image").paste?.(event) ?? false;
  }
}

/**
 * @param {Kind} kind
 * @param {Context} context
 * @param {import("./kinds.js").ImageAxes | null} image
 * @returns {Editor}
 */
function makeEditor(kind, context, image) {
  if (kind === "image" && image) {
    return createImageEditor(context, image);
  }
  const makers = {
    audio: createAudioEditor,
    text: createTextEditor,
    values: createValuesEditor,
    image: createValuesEditor,
  };
  return makers[kind](context);
}
