/**
 * The self-test's figures are those of the Python loader, to the last bit. What Python found stands in a file that the
 * Python tests write; its name comes in FIGURES. Without it only what needs no reference runs.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";

import { OutputFigures } from "../../../templates/web/package/loader/metrics.js";
import { decodeHalf, sum } from "../../../templates/web/package/loader/numbers.js";
import { findElement, viewBytes } from "../../../templates/web/package/loader/signature.js";

const file = process.env.FIGURES;

/** @param {{ type: string, dims: number[], base64?: string, values?: string[] }} stored */
function read({ type, dims, base64, values }) {
  const element = findElement({ kind: "tensor", element_type: type, shape: null });
  assert.ok(element);
  if (values) return { type: element.type, dims, data: values };
  const bytes = new Uint8Array(Buffer.from(base64 ?? "", "base64"));
  const items = dims.reduce((product, size) => product * size, 1);
  return { type: element.type, dims, data: viewBytes(element.type, bytes.buffer, items) };
}

describe("the figures of Python", { skip: file ? false : "FIGURES names no file: the Python tests write it" }, () => {
  /** @type {{ name: string, tolerance: any, reference: any, samples: any[], figures: any, faulty: boolean }[]} */
  const cases = file ? JSON.parse(readFileSync(file, "utf8")) : [];
  for (const { name, tolerance, reference, samples, figures, faulty } of cases) {
    it(name, () => {
      const found = new OutputFigures("y", reference);
      for (const [at, sample] of samples.entries()) {
        found.add(read(sample.actual), read(sample.reference), tolerance, `sample '${at}'`);
      }
      const { sqnr_db, low_sqnr_db, worst_sqnr_db, ...exact } = found.toJSON();
      const { sqnr_db: wanted, low_sqnr_db: low, worst_sqnr_db: worst, ...rest } = figures;
      assert.deepEqual(exact, rest);
      for (const [one, other] of [[sqnr_db, wanted], [low_sqnr_db, low], [worst_sqnr_db, worst]]) {
        assert.equal(one === null, other === null);
        if (one !== null) assert.ok(Math.abs(one - other) <= 1e-12 * Math.abs(other)); // Two logarithms.
      }
      assert.equal(found.findFault(tolerance) !== null, faulty);
    });
  }
});

describe("a sum", () => {
  it("of many small numbers does not drift", () => {
    assert.ok(Math.abs(sum(new Float64Array(1_000_000).fill(0.1)) - 100_000) < 1e-8);
  });
});

describe("half precision", () => {
  /** @type {[number, number][]} */
  const known = [
    [0x3c00, 1],
    [0xc000, -2],
    [0x7bff, 65504],
    [0x0001, 2 ** -24],
    [0x7c00, Infinity],
    [0xfc00, -Infinity],
    [0x7e00, NaN],
    [0x8000, -0],
  ];
  for (const [bits, number] of known) {
    it(`reads 0x${bits.toString(16)} as ${number}`, () => assert.ok(Object.is(decodeHalf(bits), number)));
  }
});
