/** The sheet of the image editor: a canvas to draw on with a pen, which also takes pictures. */

import { choice, element } from "./elements.js";
import { alertOf, InputProblem } from "./problems.js";

/** @typedef {{ width: number, height: number }} Frame */

/** Longest side of a picture on the sheet: more only costs memory, the model sees less. */
const LONGEST_SIDE = 1600;
const BLANK_SIDE = 640;
const INKS = [
  { value: "dark", text: "black on white" },
  { value: "light", text: "white on black" },
];

/**
 * @param {Frame} frame the sides of what the model takes: an empty sheet has the same shape
 * @param {boolean} light whether an empty sheet is black with a white pen, as pictures of digits mostly are
 * @param {() => void} changed
 */
export function createSheet(frame, light, changed) {
  let dark = !light;
  let picture = false;
  const canvas = element("canvas", {
    class: "sheet",
    tabindex: 0,
    role: "img",
    "aria-label": "Sheet: draw with the pointer, drop or paste a picture",
  });
  const penWidth = element("input", { type: "range", min: 1, max: 20, value: 7, "aria-label": "Width of the pen" });
  const ink = choice(INKS, light ? "light" : "dark", (value) => {
    dark = value === "dark";
    clear();
  });
  const problem = element("div", {});
  const paper = () => (dark ? "#ffffff" : "#000000");

  function clear() {
    picture = false;
    problem.replaceChildren();
    blank();
    changed();
  }

  function blank() {
    const by = BLANK_SIDE / Math.max(frame.width, frame.height);
    canvas.width = Math.max(16, Math.round(frame.width * by));
    canvas.height = Math.max(16, Math.round(frame.height * by));
    const pen = canvas.getContext("2d");
    if (pen) {
      pen.fillStyle = paper();
      pen.fillRect(0, 0, canvas.width, canvas.height);
    }
  }

  /** @param {Frame} wanted */
  function reshape(wanted) {
    const same = wanted.width === frame.width && wanted.height === frame.height;
    frame = wanted;
    if (!same && !picture) {
      blank();
    }
  }

  /** @param {Blob} file */
  async function take(file) {
    try {
      const bitmap = await createImageBitmap(file);
      const by = Math.min(1, LONGEST_SIDE / Math.max(bitmap.width, bitmap.height));
      canvas.width = Math.max(1, Math.round(bitmap.width * by));
      canvas.height = Math.max(1, Math.round(bitmap.height * by));
      canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      bitmap.close();
      picture = true;
      problem.replaceChildren();
      changed();
    } catch {
      const error = new InputProblem(
        "this file is not a picture that the browser can read",
        "use a PNG, JPEG or WebP file",
      );
      problem.replaceChildren(alertOf(error));
    }
  }

  /** @param {ClipboardEvent} event */
  function paste(event) {
    const file = Array.from(event.clipboardData?.files ?? []).find(({ type }) => type.startsWith("image/"));
    if (file) {
      event.preventDefault();
      void take(file);
    }
    return Boolean(file);
  }

  blank();
  followPointer(canvas, () => ({ colour: dark ? "#000000" : "#ffffff", width: Number(penWidth.value) / 100 }), changed);
  return { canvas, penWidth, ink, problem, paper, clear, reshape, take, paste };
}

/**
 * Draw where a pressed pointer goes.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {() => { colour: string, width: number }} pen its width is a share of the sheet's shorter side
 * @param {() => void} changed
 */
function followPointer(canvas, pen, changed) {
  /** @type {{ x: number, y: number } | null} */
  let last = null;
  const at = (/** @type {PointerEvent} */ event) => {
    const box = canvas.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * canvas.width;
    return { x, y: ((event.clientY - box.top) / box.height) * canvas.height };
  };
  const stroke = (/** @type {PointerEvent} */ event) => {
    const context = canvas.getContext("2d");
    const to = at(event);
    if (context && last) {
      const { colour, width } = pen();
      context.strokeStyle = colour;
      context.lineCap = "round";
      context.lineJoin = "round";
      context.lineWidth = Math.max(1, width * Math.min(canvas.width, canvas.height));
      context.beginPath();
      context.moveTo(last.x, last.y);
      context.lineTo(to.x, to.y);
      context.stroke();
    }
    last = to;
    changed();
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = at(event);
    stroke(event);
  });
  canvas.addEventListener("pointermove", (event) => last && stroke(event));
  for (const end of /** @type {const} */ (["pointerup", "pointercancel"])) {
    canvas.addEventListener(end, () => (last = null));
  }
}
