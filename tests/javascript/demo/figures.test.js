/** What is shown of an output, and what is said about it. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import {
  areShares,
  best,
  chooseViews,
  greatestDifference,
  latencyOf,
  scoreRows,
  softmax,
  statistics,
} from "../../../templates/web/package/demo/figures.js";
import { formatBytes, formatNumber, showName } from "../../../templates/web/package/demo/format.js";

describe("the first view of an output", () => {
  const first = (/** @type {string} */ type, /** @type {number[]} */ dims) => chooseViews(type, dims)[0];

  it("suits its type and shape", () => {
    assert.equal(first("float32", [1, 1000]), "scores");
    assert.equal(first("float32", [1, 1000, 1, 1]), "scores");
    assert.equal(first("int64", [1]), "number");
    assert.equal(first("float32", []), "number");
    assert.equal(first("float32", [1, 1, 160, 320]), "heat");
    assert.equal(first("float32", [1, 3, 64, 64]), "picture");
    assert.equal(first("string", [3]), "text");
    assert.equal(first("int64", [4]), "table");
    assert.equal(first("float32", [0, 4]), "table");
  });

  it("is a curve where the model's own axis is free and long", () => {
    assert.deepEqual(chooseViews("float32", [1, 501], [1, "frames"]), ["curve", "table"]);
    assert.equal(chooseViews("float32", [1, 501], [1, 501])[0], "scores");
  });
});

it("takes one axis of classes and one of rows as scores", () => {
  assert.deepEqual(scoreRows([4, 10]), { rows: 4, columns: 10 });
  assert.deepEqual(scoreRows([1, 10, 1, 1]), { rows: 1, columns: 10 });
  assert.equal(scoreRows([2, 3, 4]), null);
});

it("finds the highest scores, whatever is among them", () => {
  assert.deepEqual(
    best([0.1, NaN, 0.7, 0.7], 3).map(({ index }) => index),
    [2, 3, 0],
  );
  assert.ok(areShares([0.25, 0.75]));
  assert.ok(!areShares([2, -1]));
  assert.deepEqual(softmax([1000, 1000]), [0.5, 0.5]);
});

it("counts what is not finite apart", () => {
  assert.deepEqual(statistics(new Float64Array([1, 3, NaN])), { least: 1, most: 3, mean: 2, odd: 1 });
});

it("gives median and 90th percentile of the runs", () => {
  const times = Array.from({ length: 20 }, (_, index) => index + 1);
  assert.deepEqual(latencyOf(times), { median: 10.5, p90: 18, least: 1, most: 20 });
  assert.deepEqual(latencyOf([7]), { median: 7, p90: 7, least: 7, most: 7 });
});

it("compares with the recorded output", () => {
  assert.equal(greatestDifference(new Float64Array([1, NaN, Infinity]), new Float64Array([1.5, NaN, Infinity])), 0.5);
  assert.equal(greatestDifference(new Float64Array([1]), new Float64Array([1, 2])), null);
  assert.equal(greatestDifference(new Float64Array([1]), null), null);
});

describe("text for a person", () => {
  it("has sizes and numbers in few digits", () => {
    assert.equal(formatBytes(14_300_000), "14.3 MB");
    assert.equal(formatBytes(1), "1 byte");
    assert.equal(formatNumber(0.123456789), "0.12346");
    assert.equal(formatNumber(-1e-9), "−1.00e−9");
    assert.equal(formatNumber(5n), "5");
    assert.equal(formatNumber(null), "–");
  });

  it("shows hostile names as they are written, not as they act", () => {
    assert.equal(showName("a\u202eb\n"), "a\\u{202e}b\\u{a}");
    assert.equal(showName("\ud800"), "\\u{d800}");
    assert.ok(showName("x".repeat(10_000)).length <= 64);
  });
});
