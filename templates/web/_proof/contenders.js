// A contender runs in a frame of its own, with its own copy of the runtime, and is driven from the page around it.

/** @typedef {{variant: string, build: string, model: string}} Terms */
/** @typedef {{build(): string, open(): Promise<void>, call(): Promise<void>, close(): Promise<void>}} Contender */

/**
 * Called in the frame: make the contender, and leave it where the page looks for it.
 * @param {(terms: Terms) => Promise<Contender>} make
 */
export function offer(make) {
  const terms = Object.fromEntries(new URLSearchParams(location.search));
  /** @type {any} */ (window).contender = make(/** @type {any} */ (terms));
}

/**
 * Called in the page: open the frame and wait for its contender.
 * @param {"bundle"|"plain"} kind
 * @param {Partial<Terms>} terms
 * @returns {Promise<Contender & {remove(): void}>}
 */
export async function invite(kind, terms) {
  const frame = document.createElement("iframe");
  frame.src = `${kind}.html?${new URLSearchParams(terms)}`;
  const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
  document.body.append(frame);
  await loaded;
  const inside = /** @type {any} */ (frame.contentWindow);
  if (!inside.contender) throw new Error(`${kind}.html did not load`);
  try {
    return { ...(await inside.contender), remove: () => frame.remove() };
  } catch (error) {
    frame.remove();
    throw error;
  }
}
