/** The outputs of the last run, one card each, with names of classes and a download. */

import { acceptDrops, element, field, filePicker, place, refill } from "./elements.js";
import { createOutputCard } from "./output_card.js";
import { parseLabels } from "./typed.js";

/** @typedef {import("./bundle.js").Port} Port */
/** @typedef {import("./bundle.js").Sample} Sample */
/** @typedef {import("./running.js").Answers} Answers */

const EMPTY = "Outputs appear here. Run the model with the recorded sample, or give it an input of your own.";
/** Milliseconds after which a download has surely begun. */
const BEGUN = 1000;

export class OutputSide {
  /**
   * @param {readonly Port[]} ports
   * @param {readonly string[]} unstable
   */
  constructor(ports, unstable) {
    this.unstable = unstable;
    /** @type {readonly string[]} */
    this.labels = [];
    /** @type {Answers} */
    this.answers = new Map();
    /** @type {Sample | null} */
    this.reference = null;
    this.cards = ports.map((port) => ({ name: port.name, card: createOutputCard(port, () => this.labels) }));
    this.problem = element("div", {});
    this.timing = element("div", {});
    this.results = element("div", { class: "stack" }, element("p", { class: "empty" }, EMPTY));
    this.naming = createLabelsEditor((text) => this.takeLabels(text));
    this.save = element(
      "button",
      { type: "button", class: "quiet", click: () => download(this.answers) },
      "Download as JSON",
    );
    this.naming.hidden = true;
    this.save.hidden = true;
    refill(place("outputs"), this.problem, this.timing, this.results, this.naming, this.save);
  }

  /**
   * @param {Answers} answers
   * @param {Sample | null} reference
   */
  show(answers, reference) {
    this.answers = answers;
    this.reference = reference;
    const shown = this.cards.filter(({ name, card }) => {
      const tensor = answers.get(name);
      const recorded = this.unstable.includes(name) ? null : (reference?.outputs.get(name) ?? null);
      if (tensor) {
        card.show(tensor, recorded);
      }
      return tensor;
    });
    refill(this.results, ...shown.map(({ card }) => card.element));
    this.save.hidden = false;
    this.naming.hidden = !shown.some(({ name, card }) => {
      const tensor = answers.get(name);
      return tensor && card.takesLabels(tensor);
    });
  }

  /** @param {HTMLElement} view */
  showTiming(view) {
    refill(this.timing, view);
  }

  /** @param {HTMLElement | null} alert */
  showProblem(alert) {
    refill(this.problem, alert);
  }

  /** @param {string} text */
  takeLabels(text) {
    this.labels = parseLabels(text);
    if (this.answers.size) {
      this.show(this.answers, this.reference);
    }
  }
}

/** @param {(text: string) => void} taken */
function createLabelsEditor(taken) {
  const area = element("textarea", { rows: 4, spellcheck: "false", placeholder: "one per line, or a JSON list" });
  area.addEventListener("input", () => taken(area.value));
  const take = async (/** @type {File} */ file) => {
    area.value = await file.text();
    taken(area.value);
  };
  const made = element(
    "details",
    { class: "labels" },
    element("summary", {}, "Names of the classes"),
    field("Labels", area),
    element(
      "div",
      { class: "row" },
      filePicker("Choose file…", ".txt,.json,.csv,text/*", (file) => void take(file)),
    ),
  );
  acceptDrops(made, (file) => void take(file));
  return made;
}

/** @param {Answers} answers */
function download(answers) {
  const entries = [...answers].map(([name, { type, dims, data }]) => {
    const values = Array.from(/** @type {ArrayLike<unknown>} */ (data), plainValue);
    return /** @type {const} */ ([name, { type, dims, data: values }]);
  });
  const text = JSON.stringify(Object.fromEntries(entries));
  const address = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  element("a", { href: address, download: "outputs.json" }).click();
  setTimeout(() => URL.revokeObjectURL(address), BEGUN);
}

/**
 * A value as JSON has it: what JSON has no number for is written as text.
 *
 * @param {unknown} value
 */
function plainValue(value) {
  if (typeof value === "bigint") {
    return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  }
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}
