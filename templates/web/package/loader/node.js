/** @file What the loader needs of Node.js: the bundle's own files, read from disk and checked. */

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { DownloadError, IntegrityError } from "./errors.js";

const REINSTALL = "install the package again";

/** @type {import("./types.js").Platform} */
export const node = {
  name: "node",
  threads: 1, // The runtime's web build starts its workers the browser's way only.
  isolated: false,
  read,
  digest: async (bytes) => createHash("sha256").update(bytes).digest("hex"),
  importModule,
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
 * @param {import("./types.js").Part} part
 * @param {string} name
 * @param {number} instance
 */
async function importModule(part, name, instance) {
  const bytes = await read(part, { name, into: null, fresh: false, signal: undefined, onBytes: null });
  const found = await node.digest(bytes);
  if (found !== part.sha256) {
    throw new IntegrityError(`${name} is not the file that was built`, {
      why: `its SHA-256 is ${found}, not ${part.sha256}`,
      hint: REINSTALL,
    });
  }
  return import(instance ? `${part.url}#${instance}` : part.url);
}

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
