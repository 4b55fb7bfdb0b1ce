// A contender runs in a frame of its own, with its own copy of the runtime, and is driven from the page around it.

/** @typedef {{component: string, variant: string, build: string, model: string}} Terms */
/** @typedef {{build(): string, open(): Promise<void>, call(): Promise<void>, close(): Promise<void>}} Contender */

/**
 * Called in the frame: make the contender, and leave it where the page looks for it.
 * @param {(terms: Terms) => Promise<Contender>} make
 */
export function offer(make) {
  const terms = Object.fromEntries(new URLSearchParams(location.search));
  /** @type {any} */ (window).contender = make(/** @type {any} */ (terms));
}

/** @typedef {Contender & {leave(): Promise<void>}} Guest */

/**
 * Called in the page: open the frame, wait for its contender, and have it open its model and answer once.
 * @param {"bundle"|"plain"} kind
 * @param {Partial<Terms>} terms
 * @returns {Promise<{guest: Guest, opening: number}>} `opening`: milliseconds until the first answer
 */
export async function invite(kind, terms) {
  const frame = document.createElement("iframe");
  frame.src = `${kind}.html?${new URLSearchParams(terms)}`;
  const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
  document.body.append(frame);
  try {
    await loaded;
    const contender = await findContender(kind, frame);
    const began = performance.now();
    await contender.open();
    await contender.call();
    return { guest: { ...contender, leave: () => leave(contender, frame) }, opening: performance.now() - began };
  } catch (error) {
    frame.remove();
    throw error;
  }
}

/**
 * @param {string} kind
 * @param {HTMLIFrameElement} frame
 * @returns {Promise<Contender>}
 */
async function findContender(kind, frame) {
  const { contender } = /** @type {any} */ (frame.contentWindow);
  if (!contender) throw new Error(`${kind}.html did not load`);
  return contender;
}

/**
 * @param {Contender} contender
 * @param {HTMLIFrameElement} frame
 */
async function leave(contender, frame) {
  await contender.close();
  frame.remove();
}
