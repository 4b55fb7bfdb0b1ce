/** A captured graph runs on buffers that stay; what goes in and out is the caller's own. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { CapturedGraph } from "../../../templates/web/package/loader/capture.js";
import { port, Tensor } from "./fakes.js";

class FakeBuffer {
  /** @param {number} size */
  constructor(size) {
    this.size = size;
    this.bytes = new Uint8Array(size);
    this.destroyed = false;
  }

  destroy() {
    this.destroyed = true;
  }
}

function makeGraph() {
  /** @type {any} */
  const device = {
    createBuffer: ({ size = 0 }) => new FakeBuffer(size),
    queue: {
      writeBuffer: (
        /** @type {FakeBuffer} */ buffer,
        /** @type {number} */ at,
        /** @type {any} */ data,
        from = 0,
        count = data.byteLength,
      ) => buffer.bytes.set(new Uint8Array(data.buffer ?? data, (data.byteOffset ?? 0) + from, count), at),
      submit: () => {},
    },
    createCommandEncoder: () => ({
      copyBufferToBuffer: (/** @type {FakeBuffer} */ from, /** @type {number} */ _a, /** @type {FakeBuffer} */ to) =>
        to.bytes.set(from.bytes.subarray(0, to.size)),
      finish: () => {},
    }),
  };
  const Resident = class extends Tensor {
    /**
     * @param {any} gpuBuffer
     * @param {any} options
     */
    static fromGpuBuffer(gpuBuffer, { dataType, dims, ...rest }) {
      return Object.assign(new Tensor(dataType, undefined, dims, "gpu-buffer"), { gpuBuffer, ...rest });
    }
  };
  return { graph: new CapturedGraph(device, Resident, [port("x")]), Resident };
}

describe("inputs", () => {
  it("are written into the same buffer at each run", () => {
    const { graph } = makeGraph();
    const first = graph.write({ x: new Tensor("uint8", Uint8Array.of(1, 2, 3, 4, 5), [5]) }).x;
    assert.deepEqual([...first.gpuBuffer.bytes.subarray(0, 5)], [1, 2, 3, 4, 5]);
    const second = graph.write({ x: new Tensor("uint8", Uint8Array.of(6, 7, 8, 9, 10), [5]) }).x;
    assert.equal(second, first);
    assert.deepEqual([...first.gpuBuffer.bytes.subarray(0, 5)], [6, 7, 8, 9, 10]);
  });

  it("that lie on the GPU are copied there", () => {
    const { graph, Resident } = makeGraph();
    const gpuBuffer = new FakeBuffer(16);
    gpuBuffer.bytes.fill(7);
    const { x } = graph.write({ x: Resident.fromGpuBuffer(gpuBuffer, { dataType: "uint8", dims: [16] }) });
    assert.notEqual(x.gpuBuffer, gpuBuffer);
    assert.equal(x.gpuBuffer.bytes[15], 7);
  });
});

describe("outputs", () => {
  it("outlive the next run", () => {
    const { graph, Resident } = makeGraph();
    const gpuBuffer = new FakeBuffer(16);
    gpuBuffer.bytes.fill(1);
    const { y } = graph.copy({ y: Resident.fromGpuBuffer(gpuBuffer, { dataType: "uint8", dims: [16] }) });
    gpuBuffer.bytes.fill(2);
    assert.equal(y.gpuBuffer.bytes[0], 1);
  });
});

describe("release", () => {
  it("destroys the buffers", () => {
    const { graph } = makeGraph();
    const { x } = graph.write({ x: new Tensor("uint8", Uint8Array.of(1), [1]) });
    graph.release();
    assert.ok(x.gpuBuffer.destroyed);
  });
});
