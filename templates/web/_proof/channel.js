// What a page of the prover shares with the server: its task, messages, and the sign that it is alive.

/** @typedef {{component: string, variant: string}} Pair a variant, and whose it is */

/**
 * @typedef {object} Task what the server wants of a page; all but the first two are for timing
 * @property {Pair[]} variants
 * @property {"hardware" | "software"} adapter what the browser was started with
 * @property {Record<string, string>} models the addresses of the components' original models, beside this file
 * @property {number} seconds
 * @property {number} openings
 * @property {number} runs
 */

const base = new URL(".", import.meta.url);

/** @returns {Promise<Task>} what the server wants of this page */
export async function readTask() {
  return (await fetch(new URL("task.json", base), { cache: "no-store" })).json();
}

/**
 * Send the server a message, and wait until it has arrived.
 * @param {string} kind
 * @param {object} [message]
 */
export async function tell(kind, message = {}) {
  await fetch(new URL("result", base), { method: "POST", body: JSON.stringify({ kind, ...message }, writeNumber) });
}

/**
 * Hold an answer of the server open until this page ends: its loss tells the server that the tab has died. When the
 * server goes away instead, this page has no use, so it closes.
 */
export async function holdOn() {
  try {
    const answer = await fetch(new URL("alive", base), { cache: "no-store" });
    const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
    while (!(await reader.read()).done);
  } finally {
    window.close();
  }
}

/**
 * @param {unknown} error
 * @returns {string} what went wrong, why and what to do, as one line
 */
export function explain(error) {
  if (!(error instanceof Error)) return String(error);
  const { why, hint } = /** @type {{why?: string, hint?: string}} */ (/** @type {unknown} */ (error));
  return [`${error.name}: ${error.message}`, why, hint].filter(Boolean).join("; ");
}

/**
 * JSON has no such numbers.
 * @param {string} _key
 * @param {unknown} value
 */
function writeNumber(_key, value) {
  if (typeof value === "bigint") return Number(value);
  return typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
}
