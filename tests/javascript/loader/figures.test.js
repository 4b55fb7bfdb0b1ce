/** The self-test's figures and verdicts are those of the conformance vectors. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";

import { OutputFigures } from "../../../templates/web/package/loader/metrics.js";
import { decodeHalf, sum } from "../../../templates/web/package/loader/numbers.js";
import { findElement, viewBytes } from "../../../templates/web/package/loader/signature.js";

const CASES = JSON.parse(readFileSync(new URL("../../vectors/figures.json", import.meta.url), "utf8"));
const RELATIVE = 1e-12; // How far a figure may be from the expected one.

/** @param {{ type: string, dims: number[], base64?: string, values?: string[] }} stored */
function read({ type, dims, base64, values }) {
  const element = findElement({ kind: "tensor", element_type: type, shape: null });
  assert.ok(element);
  if (values) return { type: element.type, dims, data: values };
  const bytes = new Uint8Array(Buffer.from(base64 ?? "", "base64"));
  const items = dims.reduce((product, size) => product * size, 1);
  return { type: element.type, dims, data: viewBytes(element.type, bytes.buffer, items) };
}

/**
 * @param {unknown} found
 * @param {unknown} wanted
 */
function isNear(found, wanted) {
  if (typeof found !== "number" || typeof wanted !== "number") return found === wanted;
  return Math.abs(found - wanted) <= RELATIVE * Math.abs(wanted);
}

describe("the expected figures", () => {
  for (const { name, samples, reference, mismatch, figures, gates } of CASES) {
    for (const { name: kind, tolerance, within } of gates) {
      it(`${name}, tolerance ${kind}`, () => {
        const output = new OutputFigures("y", reference);
        for (const { actual, reference: wanted } of samples) output.add(read(actual), read(wanted), tolerance, "sample");
        assert.equal(output.mismatch !== null, mismatch);
        /** @type {Record<string, unknown>} */
        const found = { ...output.toJSON() };
        const different = Object.entries(figures ?? {}).filter(([figure, wanted]) => !isNear(found[figure], wanted));
        assert.deepEqual(different.map(([figure, wanted]) => [figure, found[figure], wanted]), []);
        assert.equal(output.findFault(tolerance) === null, within);
      });
    }
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
