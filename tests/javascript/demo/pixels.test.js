/** Pixels become the numbers that a model expects, in its layout. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { placeIn, toHeat, toNumbers, toPixels } from "../../../templates/web/package/demo/pixels.js";

/** Two pixels: orange and blue. */
const PIXELS = new Uint8ClampedArray([255, 102, 0, 255, 0, 0, 255, 255]);
const PLAIN = /** @type {const} */ ({ scale: "bytes", reversed: false });

describe("numbers of pixels", () => {
  it("stand by planes or by pixels", () => {
    const planes = toNumbers(PIXELS, 2, 1, { layout: "NCHW", channels: 3 }, PLAIN);
    assert.deepEqual([...planes], [255, 0, 102, 0, 0, 255]);
    const pixels = toNumbers(PIXELS, 2, 1, { layout: "NHWC", channels: 3 }, PLAIN);
    assert.deepEqual([...pixels], [255, 102, 0, 0, 0, 255]);
    assert.equal(toNumbers(PIXELS, 2, 1, { layout: "HWC", channels: 4 }, PLAIN)[3], 255);
  });

  it("put blue first where the model was taught so", () => {
    const numbers = toNumbers(PIXELS, 2, 1, { layout: "NHWC", channels: 3 }, { ...PLAIN, reversed: true });
    assert.deepEqual([...numbers], [0, 102, 255, 255, 0, 0]);
  });

  it("are scaled as chosen", () => {
    const first = (/** @type {"unit" | "signed" | "imagenet"} */ scale) =>
      toNumbers(PIXELS, 2, 1, { layout: "NCHW", channels: 3 }, { scale, reversed: false })[0] ?? 0;
    assert.equal(first("unit"), 1);
    assert.equal(first("signed"), 1);
    assert.ok(Math.abs(first("imagenet") - (1 - 0.485) / 0.229) < 1e-6);
  });

  it("are grey for a model of one channel", () => {
    const grey = toNumbers(PIXELS, 2, 1, { layout: "NCHW", channels: 1 }, PLAIN);
    assert.deepEqual([...grey], [Math.round(255 * 0.299 + 102 * 0.587), Math.round(255 * 0.114)]);
  });
});

it("shows a tensor over the whole range of brightness", () => {
  const pixels = toPixels(new Float64Array([-1, 1, -1, 1, -1, 1]), 2, 1, { layout: "CHW", channels: 3 });
  assert.deepEqual([...pixels], [0, 0, 0, 255, 255, 255, 255, 255]);
});

it("colours a map from dark to light, whatever is in it", () => {
  const heat = toHeat(new Float64Array([0, 1, NaN, Infinity]));
  const light = (/** @type {number} */ at) => (heat[at * 4] ?? 0) + (heat[at * 4 + 1] ?? 0) + (heat[at * 4 + 2] ?? 0);
  assert.ok(light(0) < light(1));
  assert.equal(light(2), light(0));
  assert.equal(light(3), light(1));
});

it("fits a picture into the model's frame", () => {
  const wide = { width: 200, height: 100 };
  const square = { width: 50, height: 50 };
  assert.deepEqual(placeIn("stretch", wide, square), { x: 0, y: 0, width: 50, height: 50 });
  assert.deepEqual(placeIn("contain", wide, square), { x: 0, y: 12.5, width: 50, height: 25 });
  assert.deepEqual(placeIn("cover", wide, square), { x: -25, y: 0, width: 100, height: 50 });
});
