/** The editor that a person is offered first for an input, judged by its signature. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { chooseEditors, findImage, guessScale } from "../../../templates/web/package/demo/kinds.js";
import { port } from "./ports.js";

describe("an image", () => {
  it("is recognised in either layout, with fixed and with free sizes", () => {
    assert.equal(findImage(port("x", "float32", [1, 3, 224, 224]), null)?.layout, "NCHW");
    assert.equal(findImage(port("x", "float32", ["n", 3, "h", "w"]), null)?.layout, "NCHW");
    assert.equal(findImage(port("x", "uint8", [1, 28, 28, 1]), null)?.layout, "NHWC");
    assert.equal(findImage(port("x", "float16", [3, 64, 64]), null)?.layout, "CHW");
    assert.equal(findImage(port("x", "float32", [64, 64, 4]), null)?.layout, "HWC");
  });

  it("of unknown sizes follows the recorded sample", () => {
    const open = port("x", "float32", [null, null, null, null]);
    assert.deepEqual(findImage(open, [2, 32, 48, 3]), { layout: "NHWC", channels: 3, height: 1, width: 2 });
    assert.equal(findImage(port("x", "float32", null), [1, 1, 28, 28])?.channels, 1);
  });

  it("is not seen in features, states, tables and small maps", () => {
    assert.equal(findImage(port("hidden", "float32", [1, 128, 768]), null), null);
    assert.equal(findImage(port("x", "float32", [1, 64, 7, 7]), null), null);
    assert.equal(findImage(port("x", "float32", ["batch", 4]), null), null);
    assert.equal(findImage(port("x", "bool", [1, 3, 32, 32]), null), null);
  });

  it("comes before plain values", () => {
    assert.deepEqual(chooseEditors(port("x", "float32", [1, 3, 224, 224]), null), ["image", "values"]);
  });
});

describe("sound", () => {
  it("is recognised by a long axis, or by its name", () => {
    assert.deepEqual(chooseEditors(port("x", "float32", [1, 16000]), null), ["audio", "values"]);
    assert.deepEqual(chooseEditors(port("waveform", "float32", ["batch", "samples"]), null), ["audio", "values"]);
    assert.deepEqual(chooseEditors(port("audio", "float32", [512]), null), ["audio", "values"]);
  });

  it("is only a second thought where all is free, and none in a table", () => {
    assert.deepEqual(chooseEditors(port("x", "float32", ["a", "b"]), null), ["values", "audio"]);
    assert.deepEqual(chooseEditors(port("x", "float32", ["batch", 4]), null), ["values"]);
    assert.deepEqual(chooseEditors(port("x", "float32", [64, 4000]), null), ["values"]);
  });
});

describe("text", () => {
  it("is the editor of strings, of bytes and of token ids", () => {
    assert.deepEqual(chooseEditors(port("s", "str", [null]), null), ["text"]);
    assert.deepEqual(chooseEditors(port("bytes", "int32", ["n", 2048]), null), ["text", "values"]);
    assert.deepEqual(chooseEditors(port("input_ids", "int64", ["batch", "sequence"]), null), ["text", "values"]);
  });

  it("comes after values for masks and positions", () => {
    assert.deepEqual(chooseEditors(port("attention_mask", "int64", ["batch", "sequence"]), null), ["values", "text"]);
  });
});

it("offers values for any other tensor, and nothing for what no editor makes", () => {
  assert.deepEqual(chooseEditors(port("flag", "bool", []), null), ["values"]);
  assert.deepEqual(chooseEditors(port("x", "int4", [8]), null), []);
  assert.deepEqual(chooseEditors(port("x", "float32", null, "sequence"), null), []);
});

it("reads the scale of pixels from real samples", () => {
  assert.equal(guessScale("uint8", null), "bytes");
  assert.equal(guessScale("float32", null), "unit");
  assert.equal(guessScale("float32", [0, 0.5, 1]), "unit");
  assert.equal(guessScale("float32", [-1, 0, 1]), "signed");
  assert.equal(guessScale("float32", [-2.1, 0, 2.6]), "imagenet");
  assert.equal(guessScale("float32", [0, 255]), "bytes");
});
