/** The self-test: whether this browser reproduces what the original model answered, and how closely. */

import { element, refill } from "./elements.js";
import { formatCount, formatNumber, plural, showName } from "./format.js";
import { plainButton } from "./load_card.js";
import { alertOf, explain, sentence } from "./problems.js";
import { fact } from "./runs_card.js";

/** @typedef {import("./bundle.js").SelfTest} SelfTest */
/** @typedef {import("./bundle.js").Figures} Figures */

const LONGEST_FAULT = 400;

/**
 * @param {HTMLElement} card the summary
 * @param {HTMLElement} figures where the figures of each output go
 * @param {() => void} run
 */
export function createTestCard(card, figures, run) {
  const value = element("p", { class: "value", role: "status" }, "–");
  const detail = element("p", { class: "detail" }, "It runs automatically when the model is ready.");
  const facts = element("dl", { class: "facts" });
  const foot = element("div", { class: "row foot" });
  refill(card, element("h2", { class: "label" }, "Self-test"), value, detail, facts, foot);

  function showRunning() {
    card.dataset["state"] = "busy";
    value.textContent = "Running";
    detail.textContent = "The model runs on recorded inputs; its outputs are compared with the recorded ones.";
    refill(facts);
    refill(foot);
  }

  function showNothing() {
    delete card.dataset["state"];
    value.textContent = "–";
    detail.textContent = "It runs automatically when the model is ready.";
    refill(facts);
    refill(foot);
    refill(figures);
    figures.hidden = true;
  }

  /** @param {SelfTest} result */
  function showResult(result) {
    card.dataset["state"] = result.passed ? "passed" : "failed";
    value.textContent = result.passed ? "Passed" : "Failed";
    detail.textContent = summaryOf(result);
    refill(facts, ...summaryFacts(result));
    showFoot();
    figures.hidden = false;
    refill(figures, ...headOf(result), faultsOf(result), tableOf(result));
  }

  /** @param {unknown} error */
  function showError(error) {
    card.dataset["state"] = "failed";
    value.textContent = "Not finished";
    detail.textContent = sentence(explain(error).what);
    refill(facts);
    showFoot();
    figures.hidden = false;
    refill(figures, element("h2", {}, "Self-test"), alertOf(error, "The self-test could not finish"));
  }

  function showFoot() {
    refill(foot, plainButton("Run again", run), element("a", { href: "#figures", class: "quiet" }, "Figures"));
  }

  return { showRunning, showNothing, showResult, showError };
}

/** @param {SelfTest} result */
function summaryOf(result) {
  if (!result.passed) {
    return `${plural(result.faults.length, "output")} out of tolerance: see the figures.`;
  }
  const unjudged = Object.keys(result.unjudged).length;
  if (unjudged && unjudged === result.outputs.length) {
    return "It ran; no output could be judged: see the figures.";
  }
  if (unjudged) {
    return `Within tolerance. ${plural(unjudged, "output")} could not be judged: see the figures.`;
  }
  return "Outputs match the original model's, within tolerance.";
}

/** @param {SelfTest} result */
function summaryFacts(result) {
  return [
    fact("Samples", `${formatCount(result.samples)} recorded${result.synthetic ? ", from a seed" : ""}`),
    fact("Largest error", largestError(result)),
  ];
}

/** @param {SelfTest} result */
function largestError({ outputs, unjudged }) {
  const errors = outputs.filter(({ name }) => !Object.hasOwn(unjudged, name)).map((output) => output.max_absolute ?? 0);
  const worst = Math.max(0, ...errors);
  if (!errors.length) return "not judged";
  return worst ? formatNumber(worst) : "none: bit-identical";
}

/** @param {SelfTest} result */
function headOf(result) {
  const origin = result.synthetic
    ? "The recorded inputs were generated from a seed; real samples would show more."
    : "The recorded inputs are samples that were given when the bundle was built.";
  return [
    element("h2", {}, "Self-test"),
    element("p", { class: "lead" }, `The error of each output against the original model. ${origin}`),
  ];
}

/** @param {SelfTest} result */
function faultsOf(result) {
  if (result.passed) {
    return null;
  }
  const faults = result.faults.map((fault) => element("li", {}, showName(fault, LONGEST_FAULT)));
  return element(
    "div",
    { class: "alert", role: "alert" },
    element("p", { class: "alert-title" }, "This browser does not reproduce the model's outputs"),
    element("ul", {}, ...faults),
    element(
      "p",
      {},
      element("b", {}, "Next: "),
      "try another variant above, and report this with the browser's name and the adapter to the author of the bundle.",
    ),
  );
}

/** @param {SelfTest} result */
function tableOf({ outputs, unjudged }) {
  const heads = ["Output", "Largest error", "Mean error", "Largest relative", "Cosine", "SQNR", "Same top score"];
  const head = element(
    "tr",
    {},
    ...heads.map((text, index) => element("th", { scope: "col", class: index && "num" }, text)),
  );
  const rows = outputs.map((output) =>
    element("tr", {}, nameCell(output, Object.hasOwn(unjudged, output.name) ? unjudged[output.name] ?? "" : ""), ...cellsOf(output)),
  );
  return element(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": "Figures of each output" },
    element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)),
  );
}

/**
 * @param {Figures} output
 * @param {string} unjudged why it could not have failed
 */
function nameCell(output, unjudged) {
  const text = output.mismatch ?? (unjudged && `could not be judged: ${unjudged}`);
  const note = text ? element("p", { class: output.mismatch ? "bad" : "detail" }, showName(text, LONGEST_FAULT)) : null;
  return element("th", { scope: "row" }, element("bdi", { class: "mono" }, showName(output.name)), note);
}

/** @param {Figures} output */
function cellsOf(output) {
  const errors = [output.max_absolute, output.mean_absolute, output.max_relative];
  const share = output.top1_agreement ?? output.agreement;
  const agreement = share === null ? "–" : `${formatNumber(share * 100)} %`;
  const sqnr = output.sqnr_db === null ? "–" : `${formatNumber(Number(output.sqnr_db.toFixed(1)))} dB`;
  const shown = errors.map((error) => (error === null ? "–" : formatNumber(error)));
  const texts = [...shown, cosineText(output.cosine), sqnr, agreement];
  return texts.map((text) => element("td", { class: "num" }, text));
}

/** @param {number | null} cosine */
function cosineText(cosine) {
  return cosine === null ? "–" : cosine.toFixed(6);
}
