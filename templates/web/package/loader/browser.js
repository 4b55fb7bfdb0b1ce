/** @file What the loader needs of a browser: fetch, digests, the Cache API, modules. */

import { clearShelf, openShelf } from "./cache.js";
import { DownloadError, IntegrityError } from "./errors.js";

const MOST_THREADS = 4; // What the runtime itself takes at most: more gain little and crowd out the page.
const REWRITTEN = /^import [^;]+ from ["']\/@vite\/client["'];/; // How Vite's development server begins a module.
const REDEPLOY = "deploy the package's folder again, whole and unchanged; keep minifiers off vendor/";

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
    return target.onBytes || target.into ? await stream(response, part, target) : await whole(response, target);
  } catch (error) {
    if (error instanceof RangeError) throw error; // No memory: the network is not to blame.
    throw target.signal?.aborted ? target.signal.reason : cutOff(target.name, error);
  }
}

/**
 * @param {import("./types.js").Part} part
 * @param {import("./types.js").ReadTarget} target
 * @returns {Promise<Response>}
 */
async function request(part, target) {
  // Off a secure origin pages have no digests of their own, but `fetch` checks one all the same.
  const integrity = globalThis.crypto?.subtle ? undefined : sri(part.sha256);
  const cache = target.fresh ? "reload" : "default";
  let response;
  try {
    response = await fetch(part.url, { cache, integrity, signal: target.signal });
  } catch (error) {
    throw target.signal?.aborted ? target.signal.reason : await explainFailure(part, target.name, integrity, error);
  }
  const page = response.headers.get("content-type")?.startsWith("text/html");
  const missing = response.status === 404 || response.status === 410;
  if ((page || missing) && !target.fresh) return request(part, { ...target, fresh: true }); // Browsers keep these, too.
  if (!response.ok) throw refused(target.name, response, missing);
  if (page) throw answeredWithPage(target.name);
  return response;
}

/**
 * @param {Response} response
 * @param {import("./types.js").ReadTarget} target
 */
async function whole(response, target) {
  return place(new Uint8Array(await response.arrayBuffer()), target);
}

/**
 * @param {Response} response
 * @param {import("./types.js").Part} part
 * @param {import("./types.js").ReadTarget} target
 */
async function stream(response, part, target) {
  const body = response.body;
  if (!body) return whole(response, target);
  const into = target.into ?? new Uint8Array(part.size);
  const reader = body.getReader();
  let at = 0;
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    if (at + chunk.value.length > into.length) {
      await reader.cancel();
      return new Uint8Array(part.size + 1); // Longer than it may be: the size alone tells that it is another file.
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
 * Build tools put small files into the code as data: URLs, which a strict `connect-src` lets nobody fetch.
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
 * The browser itself checks the digest while it preloads, and the import takes what was preloaded: one request, and
 * no rule for blob: scripts in the page's security policy. Workers and browsers without that check the bytes first.
 *
 * @param {import("./types.js").Part} part
 * @param {string} name
 * @param {number} instance
 * @param {(text: string) => void} note
 */
async function importModule(part, name, instance, note) {
  const url = instance ? `${part.url}#${instance}` : part.url;
  if (!part.url.startsWith("data:") && canPreload()) {
    if (await preload(url, part)) return importFrom(url, name);
    await check(part, name, true, note); // It was an old copy, if this does not tell what is wrong.
    return importFrom(`${part.url}#${instance}-again`, name); // A page never asks twice for a module that failed.
  }
  await check(part, name, false, note);
  return importFrom(url, name);
}

/**
 * @param {string} url
 * @param {string} name
 */
async function importFrom(url, name) {
  try {
    return await import(/* webpackIgnore: true */ /* @vite-ignore */ url);
  } catch (error) {
    throw cutOff(name, error);
  }
}

function canPreload() {
  return typeof document !== "undefined" && document.createElement("link").relList?.supports?.("modulepreload");
}

/**
 * @param {string} url
 * @param {import("./types.js").Part} part
 * @returns {Promise<boolean>} whether it is there and good
 */
function preload(url, part) {
  const link = document.createElement("link");
  link.rel = "modulepreload";
  link.crossOrigin = "anonymous";
  link.integrity = sri(part.sha256);
  link.href = url;
  return new Promise((resolve) => {
    link.onload = () => resolve(true);
    link.onerror = () => resolve(false);
    document.head.append(link);
  }).finally(() => link.remove());
}

/**
 * @param {import("./types.js").Part} part
 * @param {string} name
 * @param {boolean} fresh whether to pass by the browser's own cache
 * @param {(text: string) => void} note
 */
async function check(part, name, fresh, note) {
  const target = { name, into: null, fresh, signal: undefined, onBytes: null };
  const bytes = await read(part, target);
  const found = await digest(bytes);
  if (bytes.length === part.size && (found === null || found === part.sha256)) return;
  if (REWRITTEN.test(new TextDecoder().decode(bytes.subarray(0, 300)))) {
    note(`${name} was not checked: this is a development server, which rewrites modules as it serves them`);
    return;
  }
  throw new IntegrityError(`${name} is not the file that was built`, {
    why: `it has ${bytes.length} bytes with SHA-256 ${found}, not ${part.size} with ${part.sha256}`,
    hint: REDEPLOY,
  });
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
 * `fetch` does not tell a digest that is wrong from a network that fails: whether the server answers at all does.
 *
 * @param {import("./types.js").Part} part
 * @param {string} name
 * @param {string | undefined} integrity
 * @param {unknown} cause
 */
async function explainFailure(part, name, integrity, cause) {
  const answer = integrity && (await fetch(part.url, { method: "HEAD" }).catch(() => null));
  if (!answer || !answer.ok) return unreachable(name, cause);
  const why = `the browser found that its SHA-256 is not ${part.sha256}`;
  return new IntegrityError(`${name} is not the file that was built`, { why, hint: REDEPLOY, cause });
}

/**
 * @param {string} name
 * @param {unknown} cause
 */
function unreachable(name, cause) {
  const offline = globalThis.navigator?.onLine === false;
  return new DownloadError(`${name} could not be fetched${offline ? ": this device is offline" : ""}`, {
    why: String(cause),
    hint: offline ? "go online once: after the first visit the files are kept" : "check the connection and try again",
    cause,
  });
}

/**
 * @param {string} name
 * @param {unknown} cause
 */
function cutOff(name, cause) {
  return new DownloadError(`the download of ${name} broke off`, {
    why: String(cause),
    hint: "check the connection and try again",
    cause,
  });
}
