/** What went wrong, for a person: what, why, what next. */

import { element } from "./elements.js";
import { showName } from "./format.js";

const LONGEST = 1200;

/** An input that a person has to change before the model can run. */
export class InputProblem extends Error {
  /**
   * @param {string} message
   * @param {string} [hint]
   */
  constructor(message, hint = "") {
    super(message);
    this.name = "InputProblem";
    this.hint = hint;
  }
}

/**
 * An error's own account. The loader's errors carry `why` and `hint`; others have a message only.
 *
 * @param {unknown} error
 * @returns {{ what: string, why: string, next: string }}
 */
export function explain(error) {
  const known = /** @type {{ message?: unknown, why?: unknown, hint?: unknown }} */ (
    typeof error === "object" && error !== null ? error : { message: String(error) }
  );
  const text = (/** @type {unknown} */ value) => (typeof value === "string" ? clean(value) : "");
  return { what: text(known.message) || "something went wrong", why: text(known.why), next: text(known.hint) };
}

/**
 * An alert that a screen reader speaks at once.
 *
 * @param {unknown} error
 * @param {string} [title]
 * @param {(Node | null)[]} actions
 */
export function alertOf(error, title = "", ...actions) {
  const { what, why, next } = explain(error);
  return element(
    "div",
    { class: "alert", role: "alert" },
    element("p", { class: "alert-title" }, sentence(title || what)),
    title ? element("p", {}, sentence(what)) : null,
    why ? element("p", {}, element("b", {}, "Why: "), why) : null,
    next ? element("p", {}, element("b", {}, "Next: "), next) : null,
    actions.length ? element("div", { class: "row" }, ...actions) : null,
  );
}

/**
 * A message with a capital at its start, unless it starts with the name of a file.
 *
 * @param {string} text
 */
export function sentence(text) {
  return /^\p{L}+[\s,;:.]/u.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}

/** @param {string} text */
function clean(text) {
  return showName(text.replace(/\s+/g, " ").trim(), LONGEST);
}
