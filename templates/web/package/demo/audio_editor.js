/** The editor for sound: a file or a recording, decoded to one channel at the model's sample rate. */

import { acceptDrops, element, field, filePicker, refill } from "./elements.js";
import { formatSeconds, plural } from "./format.js";
import { encode } from "./numbers.js";
import { alertOf, InputProblem } from "./problems.js";
import { waveOf } from "./sample_view.js";
import { countElements } from "./shapes.js";

/** @typedef {import("./input_card.js").Context} Context */

const USUAL_RATE = 16000;
const LEAST_RATE = 3000;
const MOST_RATE = 384000;
const TONE = 440;

/** @param {Context} context */
export function createAudioEditor({ port, sizes, changed }) {
  const type = port.type.element_type ?? "float32";
  const last = (port.type.shape?.length ?? 1) - 1;
  const fixed = port.type.shape?.[last];
  /** @type {Blob | null} */
  let source = null;
  let address = "";
  let sound = tone(USUAL_RATE);
  const rate = element("input", {
    type: "number",
    min: LEAST_RATE,
    max: MOST_RATE,
    step: 1,
    class: "short",
    value: USUAL_RATE,
  });
  rate.addEventListener("change", () => void decodeSource());
  const view = element("div", { class: "sound" });
  const player = element("audio", { controls: true, hidden: true });
  const problem = element("div", {});

  async function decodeSource() {
    const hertz = Math.min(MOST_RATE, Math.max(LEAST_RATE, Number(rate.value) || USUAL_RATE));
    try {
      sound = source ? await decodeSound(source, hertz) : tone(hertz);
      refill(problem);
    } catch {
      refill(
        problem,
        alertOf(new InputProblem("this file is not audio that the browser can read", "use a WAV, MP3 or Ogg file")),
      );
    }
    show(hertz);
    changed();
  }

  /** @param {number} hertz */
  function show(hertz) {
    const from = source ? "" : "A tone of 440 Hz until you choose a file: ";
    const length = `${from}${formatSeconds(sound.length / hertz)}, ${plural(sound.length, "sample")}`;
    refill(view, waveOf(sound), element("p", { class: "soft" }, `${length}${fitNote()}`));
  }

  function fitNote() {
    if (typeof fixed !== "number" || fixed === sound.length) {
      return "";
    }
    return sound.length > fixed ? `, of which the first ${fixed} are used` : `, padded with silence to ${fixed}`;
  }

  /** @param {Blob} blob */
  function take(blob) {
    source = blob;
    URL.revokeObjectURL(address);
    address = URL.createObjectURL(blob);
    player.src = address;
    player.hidden = false;
    void decodeSource();
  }

  function read() {
    const length = typeof fixed === "number" ? fixed : sound.length;
    const fitted = new Float32Array(length);
    fitted.set(sound.subarray(0, length));
    if (typeof fixed !== "number") {
      sizes.set(port, last, length);
    }
    const dims = (port.type.shape ?? [null]).map((size, axis) =>
      axis === last ? length : typeof size === "number" ? size : 1,
    );
    if (countElements(dims) !== length) {
      throw new InputProblem(`one channel of sound does not fit [${dims.join(", ")}]`, "choose Values instead");
    }
    return { dims, data: encode(type, fitted) };
  }

  const made = element("div", { class: "editor" });
  refill(
    made,
    view,
    player,
    element(
      "div",
      { class: "row bottom" },
      filePicker("Choose sound…", "audio/*,video/*", take),
      recordButton(take, problem),
      field("Samples a second", rate),
    ),
    problem,
  );
  acceptDrops(made, take);
  show(USUAL_RATE);
  return { element: made, read };
}

/**
 * Decode at a rate; the mean of all channels.
 *
 * @param {Blob} blob
 * @param {number} hertz
 */
async function decodeSound(blob, hertz) {
  const buffer = await new OfflineAudioContext(1, 1, hertz).decodeAudioData(await blob.arrayBuffer());
  const mixed = new Float32Array(buffer.length);
  for (let channel = 0; channel < buffer.numberOfChannels; channel += 1) {
    buffer.getChannelData(channel).forEach((value, at) => {
      mixed[at] = (mixed[at] ?? 0) + value / buffer.numberOfChannels;
    });
  }
  return mixed;
}

/**
 * A button that starts and ends a recording; null where the browser has none to offer.
 *
 * @param {(blob: Blob) => void} taken
 * @param {HTMLElement} problem
 */
function recordButton(taken, problem) {
  if (!navigator.mediaDevices || typeof MediaRecorder === "undefined") {
    return null;
  }
  /** @type {MediaRecorder | null} */
  let recorder = null;
  const button = element("button", { type: "button", "aria-pressed": "false" }, "Record");

  async function start() {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    recorder = new MediaRecorder(stream);
    recorder.addEventListener("dataavailable", ({ data }) => taken(data));
    recorder.addEventListener("stop", () => stream.getTracks().forEach((track) => track.stop()));
    recorder.start();
    setState("Stop", true);
  }

  /**
   * @param {string} text
   * @param {boolean} pressed
   */
  function setState(text, pressed) {
    button.textContent = text;
    button.setAttribute("aria-pressed", String(pressed));
  }

  button.addEventListener("click", () => {
    if (recorder) {
      recorder.stop();
      recorder = null;
      setState("Record", false);
    } else {
      start().catch(() =>
        refill(problem, alertOf(new InputProblem("the microphone is not available", "allow it, or choose a file"))),
      );
    }
  });
  return button;
}

/**
 * One second of a quiet tone: something to run with before a file is chosen.
 *
 * @param {number} hertz
 */
function tone(hertz) {
  return Float32Array.from({ length: hertz }, (_, at) => 0.3 * Math.sin((2 * Math.PI * TONE * at) / hertz));
}
