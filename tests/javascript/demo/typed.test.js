/** What a person types becomes numbers, or a plain sentence about what is wrong. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { fitLength, guessPadding, parseLabels, parseNumbers } from "../../../templates/web/package/demo/typed.js";

describe("numbers", () => {
  it("may stand between commas, spaces and line ends, or in nested lists", () => {
    assert.deepEqual(parseNumbers("1, -2.5\n3e2;4"), { numbers: [1, -2.5, 300, 4], dims: [4] });
    assert.deepEqual(parseNumbers("[[1, 2, 3], [4, 5, 6]]"), { numbers: [1, 2, 3, 4, 5, 6], dims: [2, 3] });
    assert.deepEqual(parseNumbers("[]"), { numbers: [], dims: [0] });
  });

  it("know what is not finite, and truth values", () => {
    assert.deepEqual(parseNumbers("NaN inf -Infinity true").numbers, [NaN, Infinity, -Infinity, 1]);
    assert.deepEqual(parseNumbers("[NaN, -inf, true]").numbers, [NaN, -Infinity, 1]);
  });

  it("are refused with the word that is none", () => {
    assert.throws(() => parseNumbers("1, two"), /“two” is not a number/);
    assert.throws(() => parseNumbers("1, 2x"), /“2x” is not a number/);
    assert.throws(() => parseNumbers("  "), /no values are given/);
    assert.throws(() => parseNumbers("[1, 2"), /cannot be read/);
    assert.throws(() => parseNumbers("[[1, 2], [3]]"), /not all of the same length/);
    assert.throws(() => parseNumbers('[["1"], [null]]'), /“null” is not a number/);
  });
});

describe("labels", () => {
  it("come one a line, as a JSON list, or as a JSON object either way round", () => {
    assert.deepEqual(parseLabels("cat\ndog\r\n"), ["cat", "dog"]);
    assert.deepEqual(parseLabels('["cat", "dog"]'), ["cat", "dog"]);
    assert.deepEqual(parseLabels('{"0": "cat", "1": ["n02", "dog"]}'), ["cat", "dog"]);
    assert.deepEqual(parseLabels('{"dog": 1, "cat": 0}'), ["cat", "dog"]);
    assert.deepEqual(parseLabels(""), []);
  });

  it("that are no JSON are lines", () => {
    assert.deepEqual(parseLabels("[unused]\ndog"), ["[unused]", "dog"]);
  });
});

it("makes text as long as the model wants it", () => {
  assert.deepEqual(fitLength([1, 2, 3], 2, 0), [1, 2]);
  assert.deepEqual(fitLength([1], 3, 256), [1, 256, 256]);
  assert.deepEqual(fitLength([1, 2], null, 0), [1, 2]);
  assert.deepEqual(fitLength([], null, 5), [5]);
});

it("fills up with what a recorded sample was filled up with", () => {
  assert.equal(guessPadding([9, 8, 256, 256, 256]), 256);
  assert.equal(guessPadding([9, 8, 7]), 0);
  assert.equal(guessPadding([1, 2, 3, 4]), 0);
  assert.equal(guessPadding(null), 0);
});
