/** @file Verified bytes between visits, in the Cache API. An entry's key is its SHA-256, so it can never be stale. */

/** @param {string} packageName */
const cacheName = (packageName) => `bundler/${packageName}`;

/** @param {string} sha256 */
const keyOf = (sha256) => new URL(`/.bundler/${sha256}`, location.origin).href;

/**
 * Rejects where the browser has no cache: private windows, opaque origins, plain http.
 *
 * @param {string} packageName
 * @returns {Promise<import("./types.js").Shelf>}
 */
export async function openShelf(packageName) {
  if (!globalThis.caches) throw new Error("this page has no Cache API: it needs https or localhost");
  const cache = await caches.open(cacheName(packageName));
  return {
    find: async (sha256) => (await cache.match(keyOf(sha256)))?.arrayBuffer() ?? null,
    keep: (sha256, bytes) => cache.put(keyOf(sha256), answer(bytes)),
    tidy: (known) => tidy(cache, known),
  };
}

/** @param {string} packageName */
export async function clearShelf(packageName) {
  await globalThis.caches?.delete(cacheName(packageName));
}

/** @param {Uint8Array} bytes */
function answer(bytes) {
  const headers = { "content-type": "application/octet-stream", "content-length": String(bytes.length) };
  return new Response(/** @type {Uint8Array<ArrayBuffer>} */ (bytes), { headers });
}

/**
 * @param {Cache} cache
 * @param {Set<string>} known
 */
async function tidy(cache, known) {
  const keys = await cache.keys();
  const old = keys.filter((key) => !known.has(key.url.slice(key.url.lastIndexOf("/") + 1)));
  await Promise.all(old.map((key) => cache.delete(key)));
}
