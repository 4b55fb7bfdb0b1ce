/** Numbers of every element type reach the runtime as it takes them. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { decode, encode, fill, fromHalf, toHalf } from "../../../templates/web/package/demo/numbers.js";

describe("half precision", () => {
  it("has the bits of IEEE 754, ties to even, with infinities and subnormals", () => {
    /** @type {[number, number][]} */
    const known = [
      [0, 0x0000],
      [1, 0x3c00],
      [-2, 0xc000],
      [65504, 0x7bff],
      [65520, 0x7c00],
      [-Infinity, 0xfc00],
      [2 ** -24, 0x0001],
      [2 ** -14, 0x0400],
      [1 + 1 / 2048, 0x3c00],
      [1 + 3 / 2048, 0x3c02],
    ];
    for (const [value, bits] of known) {
      assert.equal(toHalf(value), bits, String(value));
    }
    assert.ok(Number.isNaN(fromHalf(toHalf(NaN))));
  });

  it("comes back as it was for every pattern of bits that is a number", () => {
    for (let bits = 0; bits < 0x10000; bits += 1) {
      const value = fromHalf(bits);
      assert.ok(Number.isNaN(value) || toHalf(value) === bits, bits.toString(16));
    }
  });
});

it("rounds whole numbers and keeps them within their type", () => {
  assert.deepEqual([...encode("uint8", [-3, 2.6, 999])], [0, 3, 255]);
  assert.deepEqual([...encode("int64", [1.2, -7, NaN])], [1n, -7n, 0n]);
  assert.deepEqual([...encode("bool", [0, 5])], [0, 1]);
});

it("shows 64-bit integers, bfloat16 and whatever array holds half floats as plain numbers", () => {
  assert.deepEqual([...decode("int64", new BigInt64Array([5n, -1n]))], [5, -1]);
  assert.deepEqual([...decode("bfloat16", new Uint16Array([0x3f80]))], [1]);
  assert.deepEqual([...decode("float16", new Float32Array([0.5]))], [0.5]);
});

it("fills with random values that are the same for the same seed", () => {
  const values = fill("float32", 100, "random", 7);
  assert.deepEqual(values, fill("float32", 100, "random", 7));
  assert.notDeepEqual(values, fill("float32", 100, "random", 8));
  assert.ok([...decode("float32", values)].every((value) => value >= 0 && value < 1));
  assert.deepEqual([...fill("int32", 2, "ones", 0)], [1, 1]);
});

it("refuses a type that no array holds", () => {
  assert.throws(() => encode("int4", [1]), TypeError);
});
