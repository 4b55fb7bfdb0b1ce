/** The buttons that run the model, and what they say. */

import { element, place, refill } from "./elements.js";
import { RUNS } from "./running.js";

/** @param {{ once: () => void, many: () => void }} actions */
export function createRunBar({ once, many }) {
  const hint = "Ctrl or ⌘ with Enter runs it too";
  const run = element("button", { type: "button", class: "primary", title: hint, disabled: true, click: once }, "Run");
  const time = element("button", { type: "button", disabled: true, click: many }, `Run ${RUNS} times`);
  const live = element("input", { type: "checkbox" });
  live.addEventListener("change", () => live.checked && once());
  const status = element("p", { class: "run-status soft", role: "status" });
  refill(place("run-bar"), run, time, element("label", { class: "inline" }, live, "run on every change"), status);
  return {
    isLive: () => live.checked,
    say: (/** @type {string} */ text) => {
      status.textContent = text;
    },
    setBusy: (/** @type {boolean} */ busy, /** @type {boolean} */ ready) => {
      // `aria-disabled` while it runs: a button that is disabled for a moment would lose the keyboard's focus.
      for (const button of [run, time]) {
        button.disabled = !ready;
        button.setAttribute("aria-disabled", String(busy || !ready));
      }
    },
  };
}
