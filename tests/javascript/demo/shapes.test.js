/** Free dimensions: one size for one symbol, and shapes that follow from what was typed. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { fitDimensions, Sizes } from "../../../templates/web/package/demo/shapes.js";
import { port } from "./ports.js";

describe("sizes of free dimensions", () => {
  it("start as in the recorded sample", () => {
    const image = port("x", "float32", ["batch", 3, "?", "?"]);
    assert.deepEqual(new Sizes([image], () => [2, 3, 48, 192]).resolve(image), [2, 3, 48, 192]);
    assert.deepEqual(new Sizes([image], () => null).resolve(image), [1, 3, 1, 1]);
    assert.equal(new Sizes([], () => null).resolve(port("y", "float32", null)), null);
  });

  it("are one for a symbol, in every input", () => {
    const ids = port("ids", "int64", ["batch", "sequence"]);
    const mask = port("mask", "int64", ["batch", "sequence"]);
    const sizes = new Sizes([ids, mask], () => [1, 8]);
    let reported = 0;
    sizes.listeners.add(() => (reported += 1));
    sizes.set(ids, 1, 12);
    assert.deepEqual(sizes.resolve(mask), [1, 12]);
    assert.equal(reported, 1);
  });

  it("are their own where the sample shows that a symbol means two sizes", () => {
    const image = port("x", "float32", ["d", "d"]);
    const sizes = new Sizes([image], () => [4, 5]);
    sizes.set(image, 0, 9);
    assert.deepEqual(sizes.resolve(image), [9, 5]);
  });

  it("take no fraction and nothing below zero", () => {
    const list = port("x", "float32", ["n"]);
    const sizes = new Sizes([list], () => [4]);
    sizes.set(list, 0, 1.5);
    sizes.set(list, 0, -1);
    assert.deepEqual(sizes.resolve(list), [4]);
  });
});

describe("the shape of typed values", () => {
  it("is that of nested lists where it fits, else that of the fields", () => {
    assert.deepEqual(fitDimensions(["n", 2], [1, 2], [3, 2], 6), [3, 2]);
    assert.deepEqual(fitDimensions([1, "n"], [1, 4], [4], 4), [1, 4]);
  });

  it("lets a single free axis take what remains", () => {
    assert.deepEqual(fitDimensions(["n", 4], [1, 4], [8], 8), [2, 4]);
    assert.equal(fitDimensions(["n", 4], [1, 4], [7], 7), null);
    assert.equal(fitDimensions(["n", "m"], [1, 1], [7], 7), null);
  });
});
