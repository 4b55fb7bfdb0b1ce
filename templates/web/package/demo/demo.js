/**
 * Opens the page, once the modules that it lists are the ones that were built.
 *
 * The check is here because browsers only drop a preload whose digest is wrong, and then import the altered file all the
 * same. It finds a deployment that is incomplete, mixed or rewritten; whoever can change this file too is not held up.
 */

const AGAIN = "load the page again; if that does not help, deploy the bundle's folder again, complete and unchanged";

/** @param {HTMLLinkElement} link */
async function check({ href, integrity }) {
  const found = await fetch(href, { integrity }).catch(() => null);
  if (!found?.ok) {
    throw new Error(`${new URL(href).pathname} is missing, or does not match its checksum`);
  }
}

/** @param {unknown} error */
function giveUp(error) {
  const lines = [
    ["alert-title", "The files of this bundle cannot be used"],
    ["", error instanceof Error ? error.message : String(error)],
    ["", `Next: ${AGAIN}`],
  ];
  const alert = document.createElement("div");
  alert.className = "alert";
  alert.setAttribute("role", "alert");
  for (const [name = "", text = ""] of lines) {
    alert.append(Object.assign(document.createElement("p"), { className: name, textContent: text }));
  }
  document.getElementById("failure")?.replaceChildren(alert);
  const card = document.getElementById("load");
  card?.setAttribute("data-state", "failed");
  card?.querySelector(".value")?.replaceChildren("Not loaded");
}

async function openDemo() {
  const links = document.querySelectorAll('link[rel="modulepreload"]');
  await Promise.all(Array.from(links, (link) => check(/** @type {HTMLLinkElement} */ (link))));
  const { openPage } = await import("./page.js");
  await openPage();
}

// Exported, so that this file is a module to the type checker too.
export const opened = openDemo().catch(giveUp);
