/** Files come whole and checked or not at all, and from the cache when they were here before. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { DownloadError, IntegrityError } from "../../../templates/web/package/loader/errors.js";
import { makePackage } from "../../../templates/web/package/loader/index.js";
import { asset, bytesOf, digest, packageOf, platformOf, runtime } from "./fakes.js";

const MODEL = "payload/models/wasm/model.onnx#0";

describe("a first visit", () => {
  it("gives the runtime the whole of a file that was split", async () => {
    const ort = runtime();
    const { platform, data } = platformOf(packageOf(), { modules: [ort] });
    await makePackage(data, platform).load();
    assert.deepEqual(ort.created[0].wasm.wasmBinary, bytesOf("binary"));
    assert.deepEqual(ort.created[0].model, bytesOf("model"));
  });

  it("tells of every byte once, and never counts back", async () => {
    const { platform, data } = platformOf(packageOf());
    /** @type {import("../../../templates/web/package/loader/types.js").ProgressEvent[]} */
    const events = [];
    await makePackage(data, platform).load({ onProgress: (event) => events.push(event) });
    const loaded = events.map((event) => event.loaded);
    assert.deepEqual(
      loaded,
      loaded.toSorted((a, b) => a - b),
    );
    assert.equal(events.at(-1)?.phase, "ready");
    assert.equal(events.at(-1)?.loaded, events.at(-1)?.total);
    assert.equal(events.at(-1)?.total, "module".length + "binary".length + "model".length);
  });
});

describe("a second visit", () => {
  it("downloads nothing and says so", async () => {
    const { platform, data, asked } = platformOf(packageOf());
    assert.equal((await makePackage(data, platform).load()).report.fromCache, false);
    asked.length = 0;
    const again = { ...data, builds: packageOf().builds };
    Object.assign(again.assets, { [again.builds.wasm.module]: asset("m", ["module"]) });
    const model = await makePackage(again, { ...platform, importModule: async () => runtime() }).load();
    assert.deepEqual(asked, []);
    assert.equal(model.report.fromCache, true);
  });

  it("downloads what changed, and forgets what it replaces", async () => {
    const { platform, data, shelf } = platformOf(packageOf());
    await platform.openShelf("adder").then((kept) => kept.keep(digest("older model"), bytesOf("older model")));
    await makePackage(data, platform).load();
    assert.equal(shelf.has(digest("older model")), false);
    assert.equal(shelf.has(digest("model")), true);
  });

  it("passes by a copy that has rotted", async () => {
    const { platform, data, shelf, asked } = platformOf(packageOf());
    shelf.set(digest("model"), bytesOf("medel"));
    await makePackage(data, platform).load();
    assert.ok(asked.includes(MODEL));
    assert.deepEqual(shelf.get(digest("model")), bytesOf("model"));
  });
});

describe("a bad file", () => {
  it("is refused, and never kept", async () => {
    const files = { [MODEL]: () => bytesOf("medel") };
    const { platform, data, shelf } = platformOf(packageOf(), { files });
    await assert.rejects(makePackage(data, platform).load(), (/** @type {IntegrityError} */ error) => {
      assert.ok(error instanceof IntegrityError);
      assert.equal(error.message, "payload/models/wasm/model.onnx does not match its checksum");
      assert.match(error.why, /SHA-256 is [0-9a-f]{64}, not/);
      return true;
    });
    assert.ok(![...shelf.values()].some((bytes) => new TextDecoder().decode(bytes) === "medel"));
  });

  it("that is short says how short", async () => {
    const { platform, data } = platformOf(packageOf(), { files: { [MODEL]: () => bytesOf("mod") } });
    await assert.rejects(makePackage(data, platform).load(), {
      name: "IntegrityError",
      why: "it ends after 3 of 5 bytes",
    });
  });

  it("is asked for once more past the browser's own cache, which may hold an older one", async () => {
    const files = { [MODEL]: (/** @type {boolean} */ fresh) => bytesOf(fresh ? "model" : "older") };
    const { platform, data } = platformOf(packageOf(), { files });
    const model = await makePackage(data, platform).load();
    assert.equal(model.report.variant, "wasm");
  });

  it("that cannot be fetched stops what else is on its way", async () => {
    let stopped = false;
    const { platform, data } = platformOf(packageOf());
    const read = platform.read;
    platform.read = async (part, target) => {
      if (part.url === MODEL) throw new DownloadError("gone");
      target.signal?.addEventListener("abort", () => (stopped = true));
      return read(part, target);
    };
    await assert.rejects(makePackage(data, platform).load(), { name: "DownloadError", message: "gone" });
    assert.ok(stopped);
  });
});

describe("trouble with the cache", () => {
  it("is a note and no failure", async () => {
    const { platform, data } = platformOf(packageOf(), {
      settings: { openShelf: () => Promise.reject(new Error("private window")) },
    });
    const model = await makePackage(data, platform).load();
    assert.match(model.report.notes.join(), /files are not cached for the next visit \(Error: private window\)/);
  });

  it("is not looked for when the page wants no cache", async () => {
    const { platform, data } = platformOf(packageOf(), {
      settings: { openShelf: () => Promise.reject(new Error("asked")) },
    });
    assert.equal((await makePackage(data, platform).load({ cache: false })).report.fromCache, false);
  });
});

describe("an abort", () => {
  it("before anything was fetched fetches nothing", async () => {
    const { platform, data, asked } = platformOf(packageOf());
    await assert.rejects(makePackage(data, platform).load({ signal: AbortSignal.abort() }), { name: "AbortError" });
    assert.deepEqual(asked, []);
  });

  it("on the way ends with the caller's own reason", async () => {
    const { platform, data } = platformOf(packageOf());
    const stop = new AbortController();
    const onProgress = () => stop.abort(new Error("left the page"));
    await assert.rejects(makePackage(data, platform).load({ signal: stop.signal, onProgress }), {
      message: "left the page",
    });
  });
});
