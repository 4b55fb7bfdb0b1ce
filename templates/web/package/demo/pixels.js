/** From pixels to numbers and back. Pure: takes and gives arrays, never a canvas. */

/** @typedef {import("./kinds.js").ImageAxes} ImageAxes */
/** @typedef {"unit" | "signed" | "imagenet" | "bytes"} Scale */
/** @typedef {"stretch" | "cover" | "contain"} Fit */

/** @type {Readonly<Record<Scale, string>>} */
export const SCALES = {
  unit: "0 to 1",
  signed: "−1 to 1",
  imagenet: "ImageNet mean / std",
  bytes: "0 to 255",
};

/** Mean and standard deviation of ImageNet's channels, as torchvision's models take them. */
const IMAGENET = { mean: [0.485, 0.456, 0.406], deviation: [0.229, 0.224, 0.225] };
/** Weights of red, green and blue in grey: ITU-R BT.601, as common image libraries have them. */
const GREY = /** @type {const} */ ([0.299, 0.587, 0.114]);
const OPAQUE = 255;

/**
 * Pixels (red, green, blue, alpha by turns) as a model's numbers, in the order of its layout.
 *
 * @param {Uint8ClampedArray} pixels
 * @param {number} width
 * @param {number} height
 * @param {Pick<ImageAxes, "layout" | "channels">} axes
 * @param {{ scale: Scale, reversed: boolean, inverted?: boolean }} options `reversed` puts blue before red
 */
export function toNumbers(pixels, width, height, axes, options) {
  const area = width * height;
  const { channels, layout } = axes;
  const planes = layout.startsWith("N") ? layout[1] === "C" : layout[0] === "C";
  const made = new Float32Array(area * channels);
  for (let channel = 0; channel < channels; channel += 1) {
    const source = options.reversed && channel < 3 ? 2 - channel : channel;
    for (let at = 0; at < area; at += 1) {
      const found = channels === 1 ? greyAt(pixels, at * 4) : (pixels[at * 4 + source] ?? 0);
      const value = options.inverted && channel < 3 ? 255 - found : found;
      made[planes ? channel * area + at : at * channels + channel] = scaled(value, source, channels, options.scale);
    }
  }
  return made;
}

/**
 * Where a picture of one size is drawn in a frame of another.
 *
 * @param {Fit} fit
 * @param {{ width: number, height: number }} picture
 * @param {{ width: number, height: number }} frame
 */
export function placeIn(fit, picture, frame) {
  const across = frame.width / picture.width;
  const down = frame.height / picture.height;
  const by = fit === "cover" ? Math.max(across, down) : Math.min(across, down);
  const width = fit === "stretch" ? frame.width : picture.width * by;
  const height = fit === "stretch" ? frame.height : picture.height * by;
  return { x: (frame.width - width) / 2, y: (frame.height - height) / 2, width, height };
}

/**
 * Numbers of a tensor as pixels, each channel spread over the whole range of brightness: to see what it holds.
 *
 * @param {Float64Array} numbers
 * @param {number} width
 * @param {number} height
 * @param {Pick<ImageAxes, "layout" | "channels">} axes
 */
export function toPixels(numbers, width, height, axes) {
  const area = width * height;
  const { channels, layout } = axes;
  const planes = layout.startsWith("N") ? layout[1] === "C" : layout[0] === "C";
  const { least, most } = bounds(numbers.subarray(0, area * channels));
  const range = most - least || 1;
  const pixels = new Uint8ClampedArray(area * 4);
  for (let at = 0; at < area; at += 1) {
    for (let channel = 0; channel < 3; channel += 1) {
      const from = Math.min(channel, channels - 1);
      const value = numbers[planes ? from * area + at : at * channels + from] ?? 0;
      pixels[at * 4 + channel] = ((value - least) / range) * 255;
    }
    pixels[at * 4 + 3] = OPAQUE;
  }
  return pixels;
}

/**
 * One plane of numbers as colours from dark blue over green to yellow: an even ladder of brightness, so that it reads
 * in grey too.
 *
 * @param {Float64Array} plane
 */
export function toHeat(plane) {
  const { least, most } = bounds(plane);
  const range = most - least || 1;
  const pixels = new Uint8ClampedArray(plane.length * 4);
  plane.forEach((value, at) => {
    const place = Number.isFinite(value) ? (value - least) / range : value > 0 ? 1 : 0;
    pixels.set(heatColour(place), at * 4);
  });
  return pixels;
}

/** Stops of the ladder: red, green, blue. */
const LADDER = /** @type {const} */ ([
  [37, 23, 84],
  [45, 70, 140],
  [30, 120, 150],
  [40, 168, 130],
  [130, 208, 80],
  [250, 230, 60],
]);

/** @param {number} at from 0 to 1 */
export function heatColour(at) {
  const scaledAt = at * (LADDER.length - 1);
  const low = Math.max(0, Math.min(LADDER.length - 2, Math.floor(scaledAt)));
  const share = scaledAt - low;
  const first = LADDER[low] ?? LADDER[0];
  const second = LADDER[low + 1] ?? LADDER[0];
  return [...first.map((value, index) => value + ((second[index] ?? 0) - value) * share), OPAQUE];
}

/** @param {Float64Array} numbers */
export function bounds(numbers) {
  let least = Infinity;
  let most = -Infinity;
  for (const value of numbers) {
    if (Number.isFinite(value)) {
      least = Math.min(least, value);
      most = Math.max(most, value);
    }
  }
  return least <= most ? { least, most } : { least: 0, most: 0 };
}

/**
 * @param {Uint8ClampedArray} pixels
 * @param {number} at
 */
function greyAt(pixels, at) {
  return GREY.reduce((sum, weight, channel) => sum + weight * (pixels[at + channel] ?? 0), 0);
}

/**
 * @param {number} value
 * @param {number} channel
 * @param {number} channels
 * @param {Scale} scale
 */
function scaled(value, channel, channels, scale) {
  const unit = value / 255;
  if (scale === "bytes") {
    return Math.round(value);
  }
  if (scale === "unit" || channel > 2) {
    return unit;
  }
  if (scale === "signed") {
    return unit * 2 - 1;
  }
  const at = channels === 1 ? 1 : channel;
  return (unit - (IMAGENET.mean[at] ?? 0)) / (IMAGENET.deviation[at] ?? 1);
}
