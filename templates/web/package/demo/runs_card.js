/** The card that says which variant runs, on what, and why the ones before it do not. */

import { choice, element, refill } from "./elements.js";
import { formatCount, showName } from "./format.js";

/** @typedef {import("./bundle.js").Probed} Probed */
/** @typedef {import("./bundle.js").Report} Report */

const LONGEST_REASON = 300;
const AUTOMATIC = "";

/**
 * @param {HTMLElement} card
 * @param {(variant: string | undefined) => void} chosen
 */
export function createRunsCard(card, chosen) {
  const value = element("p", { class: "value" }, "–");
  const badges = element("p", { class: "badges" });
  const facts = element("dl", { class: "facts" });
  const reasons = element("div", { class: "reasons" });
  const picker = element("div", { class: "row foot" });
  refill(card, element("h2", { class: "label" }, "Runs on"), value, badges, facts, reasons, picker);

  /** @type {Probed[]} */
  let variants = [];

  /**
   * @param {Probed[]} probed
   * @param {string | undefined} taken
   */
  function showVariants(probed, taken) {
    variants = probed;
    const options = probed.map(({ name, available, reason }) => ({
      value: name,
      text: `only ${showName(name, 24)}${available ? "" : " (not here)"}`,
      title: showName(reason, LONGEST_REASON),
      disabled: !available,
    }));
    const automatic = { value: AUTOMATIC, text: "Best that runs here" };
    const select = choice([automatic, ...options], taken ?? AUTOMATIC, (name) => chosen(name || undefined), {
      "aria-label": "Variant to run",
    });
    refill(picker, probed.length > 1 ? select : null);
  }

  /**
   * @param {Report} report
   * @param {boolean} byHand whether a person named this variant
   */
  function showReport(report, byHand) {
    card.dataset["state"] = report.fellBack || report.softwareAdapter ? "warned" : "ready";
    value.textContent = showName(report.variant, 32);
    refill(badges, ...badgesOf(report, byHand));
    refill(facts, ...factsOf(report));
    const rejected = Object.entries(report.rejected);
    refill(reasons, ...rejected.map(([name, reason]) => whyNot(name, reason)));
  }

  function showNothing() {
    delete card.dataset["state"];
    value.textContent = "–";
    refill(badges);
    refill(facts);
    refill(reasons, ...variants.filter(({ available }) => !available).map(({ name, reason }) => whyNot(name, reason)));
  }

  return { showVariants, showReport, showNothing };
}

/**
 * @param {Report} report
 * @param {boolean} byHand
 */
function badgesOf(report, byHand) {
  const best = byHand ? badge("Chosen by hand", "plain") : badge("First choice", "good");
  return [
    report.fellBack ? badge("Fallback", "warn") : best,
    report.softwareAdapter ? badge("Software adapter", "warn") : null,
    report.crossOriginIsolated ? null : badge("Not isolated", "plain"),
  ];
}

/**
 * @param {string} text
 * @param {"good" | "warn" | "bad" | "plain"} tone
 */
export function badge(text, tone) {
  return element("span", { class: `badge ${tone}` }, text);
}

/** @param {Report} report */
function factsOf(report) {
  const adapter = report.adapter && showName(report.adapter, 80);
  return [
    fact("Providers", report.providers.map((name) => showName(name, 24)).join(", then ")),
    fact("Threads", formatCount(report.threads)),
    fact("Build", showName(report.build, 24)),
    adapter ? fact("Adapter", adapter) : null,
  ];
}

/**
 * @param {string} term
 * @param {string} text
 */
export function fact(term, text) {
  return element("div", {}, element("dt", {}, term), element("dd", {}, text));
}

/**
 * @param {string} name
 * @param {string} reason
 */
function whyNot(name, reason) {
  const text = showName(reason, LONGEST_REASON);
  return element("p", {}, element("b", {}, "Not ", element("bdi", {}, showName(name, 24)), ": "), text);
}
