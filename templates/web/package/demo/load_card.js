/** The card that shows how far loading is, and how long it took. */

import { element, refill } from "./elements.js";
import { formatBytes, formatSeconds, showName } from "./format.js";
import { fact } from "./runs_card.js";

/** @typedef {import("./bundle.js").Progress} Progress */
/** @typedef {import("./bundle.js").Report} Report */

const TOTAL = 1000;

/**
 * @param {HTMLElement} card
 * @param {{ reload: () => void, clear: () => void }} actions
 */
export function createLoadCard(card, actions) {
  const value = element("p", { class: "value" }, "Starting");
  const detail = element("p", { class: "detail" }, "Checking what this browser can run");
  const facts = element("dl", { class: "facts" });
  const bar = element("progress", { max: TOTAL, "aria-label": "Loading the model" });
  const spoken = element("p", { class: "unseen", role: "status" }, "Loading the model");
  const foot = element("div", { class: "row foot" });
  refill(card, element("h2", { class: "label" }, "Load"), value, bar, detail, facts, foot, spoken);
  card.dataset["state"] = "busy";

  /** @param {Progress} event */
  function showProgress(event) {
    // Downloads that were under way when one failed still report.
    if (card.dataset["state"] !== "busy") {
      return;
    }
    const share = event.total ? event.loaded / event.total : 0;
    const opening = event.phase !== "download";
    value.textContent = opening ? "Opening" : `${Math.floor(share * 100)} %`;
    if (opening) {
      bar.removeAttribute("value");
    } else {
      bar.value = share * TOTAL;
    }
    detail.textContent = opening
      ? "The runtime starts and reads the model"
      : `${formatBytes(event.loaded)} of ${formatBytes(event.total)}${event.cached ? " from this browser's cache" : ""}${nameOf(event.file)}`;
    const step = opening ? "Opening the model" : `Loading, ${Math.floor(share * 4) * 25} per cent`;
    if (spoken.textContent !== step) {
      spoken.textContent = step;
    }
    remember(event);
  }

  let bytes = 0;

  /** @param {Progress} event */
  function remember(event) {
    bytes = Math.max(bytes, event.total);
  }

  /** @param {Report} report */
  function showReady(report) {
    const { download, open } = report.seconds;
    card.dataset["state"] = "ready";
    value.textContent = `Ready in ${formatSeconds(download + open)}`;
    bar.hidden = true;
    detail.hidden = true;
    refill(
      facts,
      fact(
        "Files",
        `${bytes ? `${formatBytes(bytes)} ` : ""}${report.fromCache ? "from this browser's cache" : "from the network"}`,
      ),
      fact("Reading", formatSeconds(download)),
      fact("Opening", formatSeconds(open)),
    );
    spoken.textContent = "The model is ready";
    refill(foot, plainButton("Load again", actions.reload), plainButton("Clear cache", actions.clear));
  }

  function showFailure() {
    card.dataset["state"] = "failed";
    value.textContent = "Not loaded";
    bar.hidden = true;
    detail.textContent = "See the error below";
    spoken.textContent = "";
    refill(foot, plainButton("Try again", actions.reload), plainButton("Clear cache", actions.clear));
  }

  /** @param {string} text */
  function say(text) {
    detail.hidden = false;
    detail.textContent = text;
    spoken.textContent = text;
  }

  return { showProgress, showReady, showFailure, say };
}

/**
 * @param {string} text
 * @param {() => void} pressed
 */
export function plainButton(text, pressed) {
  return element("button", { type: "button", class: "quiet", click: pressed }, text);
}

/** @param {string | null} file */
function nameOf(file) {
  return file ? ` · ${showName(file.split("/").at(-1) ?? file, 40)}` : "";
}
