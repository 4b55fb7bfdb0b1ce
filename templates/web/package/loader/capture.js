/**
 * @file A captured graph: the GPU replays the first run on the same buffers. So inputs are written into permanent
 * buffers, and outputs are copied before the next run overwrites them.
 */

import { countItems, viewBytes } from "./signature.js";

const ALIGNMENT = 16; // Bytes, as for the runtime's own buffers.

// Flags of the WebGPU specification (GPUBufferUsage, GPUMapMode).
const MAP_READ = 0x1;
const COPY_SRC = 0x4;
const COPY_DST = 0x8;
const STORAGE = 0x80;
const MODE_READ = 0x1;

export class CapturedGraph {
  /**
   * @param {GPUDevice} device
   * @param {any} Tensor the runtime's class
   * @param {import("./types.js").Port[]} inputs
   */
  constructor(device, Tensor, inputs) {
    this.device = device;
    this.Tensor = Tensor;
    this.inputs = inputs;
    /** @type {Record<string, any>} */
    this.places = Object.create(null);
  }

  /**
   * The same tensors at each call, with new contents.
   *
   * @param {Record<string, any>} feeds
   */
  write(feeds) {
    for (const { name } of this.inputs) {
      const given = feeds[name];
      const place = (this.places[name] ??= this.reserve(given));
      if (given.location === "gpu-buffer") this.copyBuffer(given.gpuBuffer, place.gpuBuffer);
      else this.writeData(place.gpuBuffer, given.data);
    }
    return this.places;
  }

  /** @param {any} given */
  reserve(given) {
    const bytes = given.location === "gpu-buffer" ? given.gpuBuffer.size : given.data.byteLength;
    const gpuBuffer = this.makeBuffer(bytes);
    return this.Tensor.fromGpuBuffer(gpuBuffer, { dataType: given.type, dims: given.dims });
  }

  /** @param {number} bytes */
  makeBuffer(bytes) {
    const size = Math.max(ALIGNMENT, Math.ceil(bytes / ALIGNMENT) * ALIGNMENT);
    return this.device.createBuffer({ size, usage: STORAGE | COPY_SRC | COPY_DST });
  }

  /**
   * The GPU takes whole words of four bytes.
   *
   * @param {GPUBuffer} buffer
   * @param {any} data
   */
  writeData(buffer, data) {
    const whole = data.byteLength - (data.byteLength % 4);
    if (whole) this.device.queue.writeBuffer(buffer, 0, data.buffer, data.byteOffset, whole);
    if (whole === data.byteLength) return;
    const rest = new Uint8Array(4);
    rest.set(new Uint8Array(data.buffer, data.byteOffset + whole));
    this.device.queue.writeBuffer(buffer, whole, rest);
  }

  /**
   * @param {GPUBuffer} from
   * @param {GPUBuffer} to
   */
  copyBuffer(from, to) {
    const encoder = this.device.createCommandEncoder();
    encoder.copyBufferToBuffer(from, 0, to, 0, Math.min(from.size, to.size));
    this.device.queue.submit([encoder.finish()]);
  }

  /**
   * Outputs that are the caller's own, and outlive the next run.
   *
   * @param {Record<string, any>} results
   */
  copy(results) {
    const own = Object.create(null);
    for (const name of Object.keys(results)) own[name] = this.copyTensor(results[name]);
    return own;
  }

  /** @param {any} tensor */
  copyTensor(tensor) {
    if (tensor.location !== "gpu-buffer") return tensor;
    const { gpuBuffer: source, type: dataType, dims } = tensor;
    const gpuBuffer = this.makeBuffer(source.size);
    this.copyBuffer(source, gpuBuffer);
    tensor.dispose();
    const download = () => this.download(gpuBuffer, dataType, dims);
    return this.Tensor.fromGpuBuffer(gpuBuffer, { dataType, dims, download, dispose: () => gpuBuffer.destroy() });
  }

  /**
   * @param {GPUBuffer} source
   * @param {string} type
   * @param {readonly number[]} dims
   */
  async download(source, type, dims) {
    const staging = this.device.createBuffer({ size: source.size, usage: MAP_READ | COPY_DST });
    this.copyBuffer(source, staging);
    await staging.mapAsync(MODE_READ);
    const bytes = staging.getMappedRange().slice(0);
    staging.destroy();
    return viewBytes(type, bytes, countItems(type, dims));
  }

  release() {
    for (const name of Object.keys(this.places)) this.places[name].gpuBuffer.destroy();
  }
}
