/** @file What the loader needs of a browser: fetch, digests, the Cache API, modules. */

import { clearShelf, openShelf } from "./cache.js";
import { DownloadError, IncompatibleError, IntegrityError } from "./errors.js";

const MOST_THREADS = 4; // The runtime's own maximum: more gain little and slow the page down.
const REDEPLOY = "deploy the package's folder again, complete and unchanged";

/** @type {import("./types.js").Platform} */
export const browser = {
  name: "browser",
  get threads() {
    return browser.isolated ? Math.min(MOST_THREADS, Math.ceil((navigator.hardwareConcurrency || 1) / 2)) : 1;
  },
  get isolated() {
    return globalThis.crossOriginIsolated === true;
  },
  read,
  digest,
  importModule,
  canStartThreads,
  openShelf,
  clearShelf,
  now: () => performance.now(),
};

/**
 * @param {Uint8Array} bytes
 * @returns {Promise<string | null>} null where there is no digest to be had: `read` lets the browser check then
 */
async function digest(bytes) {
  if (!globalThis.crypto?.subtle) return null;
  const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", /** @type {Uint8Array<ArrayBuffer>} */ (bytes)));
  return Array.from(sum, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * @param {import("./types.js").Part} part
 * @param {import("./types.js").ReadTarget} target
 */
async function read(part, target) {
  if (part.url.startsWith("data:")) return place(decodeData(part.url), target);
  const response = await request(part, target);
  try {
    return await readBody(response, part, target);
  } catch (error) {
    if (error instanceof RangeError) throw error; // A lack of memory is not an error of the network.
    throw target.signal?.aborted ? target.signal.reason : cutOff(target.name, error);
  }
}

/**
 * @param {import("./types.js").Part} part
 * @param {import("./types.js").ReadTarget} target
 * @returns {Promise<Response>}
 */
async function request(part, target) {
  // Without a secure origin pages cannot compute digests, but `fetch` checks one.
  const integrity = globalThis.crypto?.subtle ? undefined : sri(part.sha256);
  const cache = target.fresh ? "reload" : "default";
  let response;
  try {
    response = await fetch(part.url, { cache, integrity, signal: target.signal });
  } catch (error) {
    throw target.signal?.aborted ? target.signal.reason : await explainFailure(part, target, integrity, error);
  }
  const page = response.headers.get("content-type")?.startsWith("text/html");
  const missing = response.status === 404 || response.status === 410;
  if ((page || missing) && !target.fresh) return request(part, { ...target, fresh: true }); // Browsers cache these, too.
  if (!response.ok) throw refused(target.name, response, missing);
  if (page) throw answeredWithPage(target.name);
  return response;
}

/**
 * In chunks, up to the size of the file: a server may send without end.
 *
 * @param {Response} response
 * @param {import("./types.js").Part} part
 * @param {import("./types.js").ReadTarget} target
 */
async function readBody({ body }, part, target) {
  if (!body) return new Uint8Array(0);
  const into = target.into ?? new Uint8Array(part.size);
  const reader = body.getReader();
  let at = 0;
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    if (at + chunk.value.length > into.length) {
      await reader.cancel();
      return new Uint8Array(part.size + 1); // Too long: the size alone shows that it is another file.
    }
    into.set(chunk.value, at);
    at += chunk.value.length;
    target.onBytes?.(chunk.value.length);
  }
  return into.subarray(0, at);
}

/**
 * @param {Uint8Array} bytes
 * @param {import("./types.js").ReadTarget} target
 */
function place(bytes, target) {
  target.onBytes?.(bytes.length);
  if (!target.into || bytes.length !== target.into.length) return bytes;
  target.into.set(bytes);
  return target.into;
}

/**
 * Build tools embed small files as data: URLs, which a strict `connect-src` forbids to fetch.
 *
 * @param {string} url
 */
function decodeData(url) {
  const comma = url.indexOf(",");
  const text = url.slice(comma + 1);
  const binary = url.slice(0, comma).endsWith(";base64") ? atob(decodeURIComponent(text)) : unescapeBytes(text);
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/** @param {string} text */
function unescapeBytes(text) {
  return text.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
}

/**
 * Through a blob URL: a second request to the server could return something else. The URL stays valid, because the
 * module's threads are started with it.
 *
 * @param {Uint8Array} bytes
 * @param {string} name
 */
async function importModule(bytes, name) {
  const code = new Blob([/** @type {Uint8Array<ArrayBuffer>} */ (bytes)], { type: "text/javascript" });
  const url = URL.createObjectURL(code);
  try {
    return await import(/* webpackIgnore: true */ /* @vite-ignore */ url);
  } catch (cause) {
    URL.revokeObjectURL(url);
    throw forbidden(name, cause);
  }
}

/**
 * The bytes match their checksum, so only the page can prevent the import.
 *
 * @param {string} name
 * @param {unknown} cause
 */
function forbidden(name, cause) {
  return new IncompatibleError(`the page's security policy forbids ${name}; it needs script-src blob:`, {
    why: String(cause),
    hint: "set the Content-Security-Policy that the package's README gives",
    cause,
  });
}

/**
 * A thread is a worker from a `blob:`, as the runtime's module is. When the page's policy forbids it, it fails
 * silently, and the runtime would wait for it forever.
 *
 * @returns {Promise<boolean>}
 */
function canStartThreads() {
  const url = URL.createObjectURL(new Blob(["postMessage(0)"], { type: "text/javascript" }));
  return new Promise((/** @type {(can: boolean) => void} */ resolve) => {
    const worker = new Worker(url);
    worker.onmessage = () => {
      worker.terminate();
      resolve(true);
    };
    worker.onerror = () => resolve(false);
  })
    .catch(() => false)
    .finally(() => URL.revokeObjectURL(url));
}

/** @param {string} hex */
function sri(hex) {
  const bytes = hex.match(/../g) ?? [];
  return `sha256-${btoa(bytes.map((byte) => String.fromCharCode(parseInt(byte, 16))).join(""))}`;
}

/**
 * @param {string} name
 * @param {Response} response
 * @param {boolean} missing
 */
function refused(name, response, missing) {
  return new DownloadError(missing ? `${name} is missing on the server` : `the server refused ${name}`, {
    why: `HTTP status ${response.status} for ${response.url}`,
    hint: missing ? REDEPLOY : "try again later, or look at the server's log",
  });
}

/** @param {string} name */
function answeredWithPage(name) {
  return new DownloadError(`${name} is missing on the server`, {
    why: "the server answered with an HTML page",
    hint: REDEPLOY,
  });
}

/**
 * `fetch` does not distinguish a wrong digest from a network failure; another request to the server does.
 *
 * @param {import("./types.js").Part} part
 * @param {import("./types.js").ReadTarget} target
 * @param {string | undefined} integrity
 * @param {unknown} cause
 */
async function explainFailure(part, { name, signal }, integrity, cause) {
  const answer = integrity && (await fetch(part.url, { method: "HEAD", signal }).catch(() => null));
  if (signal?.aborted) return signal.reason;
  if (!answer || !answer.ok) return unreachable(name, part.url, cause);
  const why = `the browser found that its SHA-256 is not ${part.sha256}`;
  return new IntegrityError(`${name} does not match its checksum`, { why, hint: REDEPLOY, cause });
}

/**
 * @param {string} name
 * @param {string} url
 * @param {unknown} cause
 */
function unreachable(name, url, cause) {
  if (url.startsWith("file:")) {
    const hint = "serve the package over HTTP; in Node.js import it by its name, or its node.js in place of index.js";
    return new DownloadError(`${name} could not be fetched from a file`, { why: String(cause), hint, cause });
  }
  const offline = globalThis.navigator?.onLine === false;
  return new DownloadError(`${name} could not be fetched${offline ? ": this device is offline" : ""}`, {
    why: String(cause),
    hint: offline ? "go online once: after the first visit the files are cached" : "check the connection and try again",
    cause,
  });
}

/**
 * @param {string} name
 * @param {unknown} cause
 */
function cutOff(name, cause) {
  return new DownloadError(`the download of ${name} was interrupted`, {
    why: String(cause),
    hint: "check the connection and try again",
    cause,
  });
}
