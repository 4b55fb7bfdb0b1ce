/** What the loader asks of a browser, on a network that misbehaves. */

import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";

import { browser } from "../../../templates/web/package/loader/browser.js";
import { bytesOf, digest } from "./fakes.js";

const real = globalThis.fetch;
afterEach(() => {
  globalThis.fetch = real;
});

/**
 * @param {(...given: any[]) => Response | Promise<Response>} answer
 * @param {object} [target]
 * @param {string} [url]
 */
function read(answer, target = {}, url = "https://page.test/model.onnx") {
  globalThis.fetch = async (...given) => answer(...given);
  const part = { path: "model.onnx", url, size: 5, sha256: digest("model") };
  return browser.read(part, {
    name: "model.onnx",
    into: null,
    fresh: false,
    signal: undefined,
    onBytes: null,
    ...target,
  });
}

describe("a file", () => {
  it("comes with its progress, piece by piece, right into the place that it is for", async () => {
    const into = new Uint8Array(5);
    /** @type {number[]} */
    const pieces = [];
    const body = new ReadableStream({
      start(stream) {
        for (const piece of ["mo", "del"]) stream.enqueue(bytesOf(piece));
        stream.close();
      },
    });
    const bytes = await read(() => new Response(body), {
      into,
      onBytes: (/** @type {number} */ count) => pieces.push(count),
    });
    assert.deepEqual(pieces, [2, 3]);
    assert.deepEqual(into, bytesOf("model"));
    assert.equal(bytes.buffer, into.buffer);
  });

  it("that is longer than it may be is not read to its end", async () => {
    let asked = 0;
    const pull = (/** @type {ReadableStreamDefaultController} */ stream) => {
      asked += 1;
      stream.enqueue(bytesOf("model"));
    };
    for (const onBytes of [null, () => {}]) {
      const bytes = await read(() => new Response(new ReadableStream({ pull })), { onBytes });
      assert.ok(bytes.length > 5);
    }
    assert.ok(asked < 10);
  });

  it("inlined by a build tool is decoded without a request, which a security policy may forbid", async () => {
    const fail = () => assert.fail("asked the network");
    assert.deepEqual(await read(fail, {}, "data:application/octet-stream;base64,bW9kZWw="), bytesOf("model"));
    assert.deepEqual(await read(fail, {}, "data:,mod%65l"), bytesOf("model"));
  });

  it("that is missing is asked for once more, past the browser's own cache", async () => {
    /** @type {string[]} */
    const caches = [];
    const answer = (/** @type {string} */ _url, /** @type {RequestInit} */ { cache }) => {
      caches.push(cache ?? "");
      return cache === "reload" ? new Response("model") : new Response("", { status: 404 });
    };
    assert.deepEqual(await read(answer), bytesOf("model"));
    assert.deepEqual(caches, ["default", "reload"]);
  });
});

describe("a failure", () => {
  /** @type {[string, () => Response, RegExp][]} */
  const failures = [
    ["of a missing file", () => new Response("", { status: 404 }), /model.onnx is missing on the server/],
    ["of the server", () => new Response("", { status: 503 }), /the server refused model.onnx/],
    ["of a server that answers all with its page", () => page(), /model.onnx is missing on the server/],
    ["of the network", () => assert.fail("no network"), /model.onnx could not be fetched/],
  ];
  for (const [what, answer, message] of failures) {
    it(`${what} says which file, why and what to do`, async () => {
      await assert.rejects(read(answer), (/** @type {any} */ error) => {
        assert.equal(error.name, "DownloadError");
        assert.match(error.message, message);
        assert.ok(error.why && error.hint);
        return true;
      });
    });
  }

  it("to fetch from a file names the module for Node.js", async () => {
    await assert.rejects(read(() => assert.fail("no such scheme"), {}, "file:///package/payload/model.onnx"), {
      name: "DownloadError",
      message: "model.onnx could not be fetched from a file",
      hint: /in Node\.js import it by its name, or its node\.js/,
    });
  });

  it("half way is a broken download", async () => {
    const body = new ReadableStream({
      start(stream) {
        stream.enqueue(bytesOf("mo"));
        stream.error(new TypeError("network error"));
      },
    });
    await assert.rejects(
      read(() => new Response(body)),
      { name: "DownloadError", message: /interrupted/ },
    );
  });

  it("for want of memory is not blamed on the network", async () => {
    const fail = (/** @type {ReadableStreamDefaultController} */ stream) =>
      stream.error(new RangeError("Array buffer allocation failed"));
    await assert.rejects(
      read(() => new Response(new ReadableStream({ pull: fail }))),
      RangeError,
    );
  });

  it("that the caller wanted is the caller's", async () => {
    const signal = AbortSignal.abort(new Error("left the page"));
    await assert.rejects(
      read(() => assert.fail("aborted"), { signal }),
      { message: "left the page" },
    );
  });
});

const page = () => new Response("<!doctype html>", { headers: { "content-type": "text/html; charset=utf-8" } });
