/** @file The files of a bundle, verified before use: from the cache, or fetched, in parallel. */

import { IntegrityError } from "./errors.js";

/** @type {Map<string, Promise<unknown>>} each module by its address, its digest and its instance */
const imported = (/** @type {any} */ (globalThis)[Symbol.for("bundler.modules")] ??= new Map());

/**
 * @typedef {object} Wishes
 * @property {import("./types.js").PackageData} data
 * @property {import("./types.js").Platform} platform
 * @property {() => Promise<import("./types.js").Shelf | null>} openShelf
 * @property {AbortSignal | undefined} signal
 * @property {((event: import("./types.js").ProgressEvent) => void) | undefined} onProgress
 */

/** One load's downloads. Bytes are counted over all requested files, and never decrease. */
export class Downloads {
  /** @param {Wishes} wishes */
  constructor(wishes) {
    this.wishes = wishes;
    this.stop = new AbortController();
    this.abort = () => this.stop.abort(wishes.signal?.reason);
    wishes.signal?.addEventListener("abort", this.abort);
    this.loaded = 0;
    this.total = 0;
    /** Whether every file so far came from the cache. */
    this.allCached = true;
    /** Trouble with the cache: it costs the next visit time, and this one nothing.
     * @type {string[]} */
    this.notes = [];
    /** @type {Map<string, Promise<Uint8Array>>} */
    this.files = new Map();
    /** @type {Promise<void>[]} */
    this.storing = [];
    this.shelf = wishes.openShelf().catch((error) => {
      this.notes.push(`files are not cached for the next visit (${error})`);
      return null;
    });
  }

  /**
   * Count files in, so that the total is known before the first of them comes.
   *
   * @param {string[]} paths
   */
  expect(paths) {
    for (const path of paths) if (!this.files.has(path)) this.total += this.asset(path).size;
  }

  /**
   * The verified bytes of one file. Raises `DownloadError` or `IntegrityError`.
   *
   * @param {string} path
   * @returns {Promise<Uint8Array>}
   */
  fetch(path) {
    let file = this.files.get(path);
    if (!file) this.files.set(path, (file = this.assemble(path)));
    return file;
  }

  /** @param {string} path */
  asset(path) {
    const asset = Object.hasOwn(this.wishes.data.assets, path) ? this.wishes.data.assets[path] : undefined;
    if (asset) return asset;
    throw new IntegrityError(`${path} is not among the files of this package`, {
      hint: "deploy the package's folder again, complete and unchanged",
    });
  }

  /** @param {string} path */
  async assemble(path) {
    const { parts, size } = this.asset(path);
    if (parts.length === 1) return this.readPart(path, parts[0], null);
    const bytes = new Uint8Array(size);
    let at = 0;
    await Promise.all(parts.map((part) => this.readPart(path, part, bytes.subarray(at, (at += part.size)))));
    return bytes;
  }

  /**
   * @param {string} path
   * @param {import("./types.js").Part} part
   * @param {Uint8Array | null} into
   */
  async readPart(path, part, into) {
    if (part.url.startsWith("data:")) return this.fetchPart(path, part, into); // It is part of the code.
    const kept = await this.recall(path, part, into);
    if (kept) return kept;
    this.allCached = false;
    const bytes = await this.fetchPart(path, part, into);
    this.storing.push(this.keep(part, bytes));
    return bytes;
  }

  /**
   * A copy may have rotted on the disk since it was kept: it is checked like anything else.
   *
   * @param {string} path
   * @param {import("./types.js").Part} part
   * @param {Uint8Array | null} into
   */
  async recall(path, part, into) {
    try {
      const shelf = await this.shelf;
      const found = shelf && (await shelf.find(part.sha256));
      if (!found) return null;
      const bytes = new Uint8Array(found);
      if (await this.explainFault(part, bytes)) return null;
      into?.set(bytes);
      this.advance(path, bytes.length, true);
      return into ?? bytes;
    } catch (error) {
      this.notes.push(`the cache could not be read (${error})`);
      return null;
    }
  }

  /**
   * The browser's own cache may answer with the file of an earlier deployment: a bad one is asked for once more.
   *
   * @param {string} path
   * @param {import("./types.js").Part} part
   * @param {Uint8Array | null} into
   */
  async fetchPart(path, part, into) {
    const { platform } = this.wishes;
    const { signal } = this.stop;
    let counted = 0;
    /** @param {number} more */
    const count = (more) => {
      const news = Math.min(more, part.size - counted); // A part that is requested again counts once.
      counted += news;
      if (news > 0) this.advance(path, news, false);
    };
    const onBytes = this.wishes.onProgress ? count : null;
    for (const fresh of [false, true]) {
      const bytes = await platform.read(part, { name: path, into, fresh, signal, onBytes });
      const fault = await this.explainFault(part, bytes);
      if (!fault) return bytes;
      if (fresh) throw altered(path, fault);
    }
    throw altered(path, "unread");
  }

  /**
   * @param {import("./types.js").Part} part
   * @param {Uint8Array} bytes
   */
  async explainFault(part, bytes) {
    if (bytes.length !== part.size) {
      return bytes.length < part.size ? `it ends after ${bytes.length} of ${part.size} bytes` : "it is too long";
    }
    const found = await this.wishes.platform.digest(bytes);
    return found === null || found === part.sha256 ? null : `its SHA-256 is ${found}, not ${part.sha256}`;
  }

  /**
   * @param {import("./types.js").Part} part
   * @param {Uint8Array} bytes
   */
  async keep(part, bytes) {
    try {
      await (await this.shelf)?.keep(part.sha256, bytes);
    } catch (error) {
      this.notes.push(`a file could not be cached for the next visit (${error})`);
    }
  }

  /**
   * The exports of one module, made of its verified bytes. The same `instance` of it is the same to all packages of a
   * page that share the file.
   *
   * @param {string} path
   * @param {number} instance
   */
  async importModule(path, instance) {
    const { parts, sha256, size } = this.asset(path);
    const key = `${parts[0].url} ${sha256} ${instance}`;
    if (imported.has(key)) this.advance(path, size, true);
    else {
      const bytes = await this.fetch(path);
      if (!imported.has(key)) this.remember(key, this.wishes.platform.importModule(bytes, path));
    }
    return imported.get(key);
  }

  /**
   * @param {string} key
   * @param {Promise<unknown>} module
   */
  remember(key, module) {
    imported.set(key, module);
    module.catch(() => imported.delete(key)); // The page may fix the cause and try again.
  }

  /** Once all is well: wait for what is being kept, and drop what an earlier version left. */
  async settle() {
    if (!this.storing.length) return; // Nothing is new, so nothing is outdated.
    await Promise.all(this.storing);
    try {
      await (await this.shelf)?.tidy(new Set(this.wishes.data.kept)); // Other imports of the package share the cache.
    } catch (error) {
      this.notes.push(`the cache could not be cleaned up (${error})`);
    }
  }

  /** Let go of the bytes; what is still on its way is of no use any more. */
  close() {
    this.wishes.signal?.removeEventListener("abort", this.abort);
    this.stop.abort();
    this.files.clear();
  }

  /**
   * @param {string | null} file
   * @param {number} count
   * @param {boolean} cached
   */
  advance(file, count, cached) {
    this.loaded = Math.min(this.loaded + count, this.total);
    this.tell("download", file, cached);
  }

  /**
   * @param {import("./types.js").ProgressEvent["phase"]} phase
   * @param {string | null} file
   * @param {boolean} cached
   */
  tell(phase, file, cached) {
    try {
      this.wishes.onProgress?.({ phase, file, loaded: this.loaded, total: this.total, cached });
    } catch (error) {
      setTimeout(() => {
        throw error; // An error of the page's progress callback is the page's, and no reason to fail the load.
      });
    }
  }
}

/**
 * Files below another address. Their digests stay those of the package, whoever serves them.
 *
 * @param {Record<string, import("./types.js").Asset>} assets
 * @param {URL} base
 * @returns {Record<string, import("./types.js").Asset>}
 */
export function moveAssets(assets, base) {
  const move = (/** @type {import("./types.js").Part} */ part) => ({ ...part, url: new URL(part.path, base).href });
  const moved = Object.entries(assets).map(([name, asset]) => [name, { ...asset, parts: asset.parts.map(move) }]);
  return Object.fromEntries(moved);
}

/**
 * @param {string} path
 * @param {string} why
 */
function altered(path, why) {
  return new IntegrityError(`${path} does not match its checksum`, {
    why,
    hint: "deploy the package's folder again, complete and unchanged",
  });
}
