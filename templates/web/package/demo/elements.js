/**
 * The few ways in which this page makes elements. Text from the model only ever becomes a text node: nothing here takes
 * markup.
 */

/** @typedef {Node | string | null | undefined} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Attributes */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element with attributes and children. A function as attribute is a listener of that event; true stands for an
 * empty attribute, null and false for none.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {Child[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  decorate(made, attributes);
  made.append(...present(children));
  return made;
}

/**
 * The same in SVG.
 *
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {Child[]} children
 */
export function drawing(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  decorate(made, attributes);
  made.append(...present(children));
  return made;
}

/**
 * The element of the page with this id.
 *
 * @param {string} id
 */
export function place(id) {
  const found = document.getElementById(id);
  if (!found) {
    throw new Error(`the page has no element #${id}`);
  }
  return found;
}

/**
 * Put children in place of what an element holds.
 *
 * @param {Element} parent
 * @param {Child[]} children
 */
export function refill(parent, ...children) {
  parent.replaceChildren(...present(children));
}

/**
 * A control with its label above it.
 *
 * @param {string} label
 * @param {HTMLElement} control
 * @param {string} [kind] a further class
 */
export function field(label, control, kind = "") {
  return element("label", { class: `field ${kind}`.trim() }, element("span", { class: "label" }, label), control);
}

/**
 * A list to choose one of.
 *
 * @param {{ value: string, text: string, title?: string, disabled?: boolean }[]} options
 * @param {string} chosen
 * @param {(value: string) => void} changed
 * @param {Attributes} [attributes]
 */
export function choice(options, chosen, changed, attributes = {}) {
  const made = element("select", attributes);
  for (const { value, text, title, disabled } of options) {
    made.append(element("option", { value, title, disabled }, text));
  }
  made.value = chosen;
  made.addEventListener("change", () => changed(made.value));
  return made;
}

/**
 * A row of choices of which one is taken, as native radio buttons: arrow keys and screen readers know them.
 *
 * @param {string} legend what is chosen, for those who cannot see it
 * @param {{ value: string, text: string }[]} options
 * @param {string} chosen
 * @param {(value: string) => void} changed
 */
export function segments(legend, options, chosen, changed) {
  const group = `segments-${(groups += 1)}`;
  const made = element("div", { class: "segments", role: "radiogroup", "aria-label": legend });
  for (const { value, text } of options) {
    const radio = element("input", { type: "radio", name: group, value, change: () => changed(value) });
    radio.checked = value === chosen;
    made.append(element("label", {}, radio, element("span", {}, text)));
  }
  return made;
}

let groups = 0;

/**
 * A button that picks files: a native file input, so that it works with keyboard and screen reader.
 *
 * @param {string} text
 * @param {string} accept
 * @param {(file: File) => void} picked
 */
export function filePicker(text, accept, picked) {
  const input = element("input", { type: "file", accept, class: "unseen" });
  input.addEventListener("change", () => {
    const file = input.files?.[0];
    input.value = "";
    if (file) {
      picked(file);
    }
  });
  return element("label", { class: "button" }, input, text);
}

/**
 * Let files be dropped on an element.
 *
 * @param {HTMLElement} target
 * @param {(file: File) => void} dropped
 */
export function acceptDrops(target, dropped) {
  target.addEventListener("dragover", (event) => {
    event.preventDefault();
    target.classList.add("dropping");
  });
  target.addEventListener("dragleave", () => target.classList.remove("dropping"));
  target.addEventListener("drop", (event) => {
    event.preventDefault();
    target.classList.remove("dropping");
    const file = event.dataTransfer?.files[0];
    if (file) {
      dropped(file);
    }
  });
}

/**
 * @param {Element} made
 * @param {Attributes} attributes
 */
function decorate(made, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      made.addEventListener(name, value);
    } else if (value !== null && value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/** @param {Child[]} children */
function present(children) {
  return /** @type {(Node | string)[]} */ (children.filter((child) => child !== null && child !== undefined));
}
