/** @file What the loader needs of Node.js: the bundle's own files, read from disk and checked. */

import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { DownloadError } from "./errors.js";

const REINSTALL = "install the package again";
const MODULE = "module.mjs";

/** @type {import("./types.js").Platform} */
export const node = {
  name: "node",
  threads: 1, // The runtime's web build can start workers only in a browser.
  isolated: false,
  read,
  digest: async (bytes) => createHash("sha256").update(bytes).digest("hex"),
  importModule,
  canStartThreads: async () => false,
  openShelf: async () => ({ find: async () => null, keep: async () => {}, tidy: async () => {} }),
  clearShelf: async () => {},
  now: () => performance.now(),
};

/**
 * @param {import("./types.js").Part} part
 * @param {import("./types.js").ReadTarget} target
 */
async function read(part, target) {
  let bytes;
  try {
    bytes = await readFile(new URL(part.url), { signal: target.signal });
  } catch (error) {
    throw target.signal?.aborted ? target.signal.reason : unreadable(target.name, error);
  }
  target.onBytes?.(bytes.length);
  if (!target.into || bytes.length !== target.into.length)
    return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
  target.into.set(bytes);
  return target.into;
}

/**
 * From a folder of this process: a second read of the package's file could return something else.
 *
 * @param {Uint8Array} bytes
 */
async function importModule(bytes) {
  const folder = await writeAside(bytes).catch(() => null);
  if (folder === null) return importInline(bytes);
  return import(pathToFileURL(join(folder, MODULE)).href).finally(() => rm(folder, { recursive: true, force: true }));
}

/** @param {Uint8Array} bytes */
async function writeAside(bytes) {
  const folder = await mkdtemp(join(tmpdir(), "bundler-module-")); // For this user alone (0700).
  await writeFile(join(folder, MODULE), bytes, { flag: "wx" });
  return folder;
}

/**
 * Where nothing may be written; its URL, which contains all of the code, is in every stack trace.
 *
 * @param {Uint8Array} bytes
 */
function importInline(bytes) {
  return import(`data:text/javascript;base64,${Buffer.from(bytes).toString("base64")}#${(inlined += 1)}`);
}

let inlined = 0;

/**
 * @param {string} name
 * @param {unknown} cause
 */
function unreadable(name, cause) {
  const missing = /** @type {{ code?: string }} */ (cause).code === "ENOENT";
  return new DownloadError(missing ? `${name} is missing` : `${name} cannot be read`, {
    why: String(cause),
    hint: REINSTALL,
    cause,
  });
}
