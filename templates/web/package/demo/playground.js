/** The playground: inputs on one side, outputs on the other, and the buttons that run the model. */

import { acceptDrops, choice, element, field, filePicker, place, refill } from "./elements.js";
import { formatMilliseconds, showName } from "./format.js";
import { createInputCard } from "./input_card.js";
import { latencyView } from "./latency_view.js";
import { createOutputCard } from "./output_card.js";
import { alertOf } from "./problems.js";
import { Sizes } from "./shapes.js";
import { parseLabels } from "./typed.js";

/** @typedef {import("./bundle.js").Given} Given */
/** @typedef {import("./bundle.js").Model} Model */
/** @typedef {import("./bundle.js").Port} Port */
/** @typedef {import("./bundle.js").Sample} Sample */
/** @typedef {import("./bundle.js").Tensor} Tensor */

const RUNS = 20;
/** Runs before the times count: the first ones compile shaders and fill caches. */
const WARM_UP = 2;
const SETTLE = 120;

/**
 * @param {{ inputs: readonly Port[], outputs: readonly Port[] }} signature
 * @param {{ first: Sample | null, synthetic: boolean, count: number, read: (index: number) => Promise<Sample | null> }} golden
 * @param {readonly string[]} unstable outputs that differ from run to run
 */
export function createPlayground(signature, golden, unstable) {
  const example = (/** @type {string} */ name) => golden.first?.inputs.get(name) ?? null;
  const sizes = new Sizes(signature.inputs, (name) => example(name)?.dims ?? null);
  const synthetic = golden.synthetic;
  const inputs = signature.inputs.map((port) => ({
    port,
    card: createInputCard({ port, sizes, example: example(port.name), synthetic, changed: noteChange }),
  }));
  /** @type {string[]} */
  let labels = [];
  const outputs = signature.outputs.map(({ name }) => ({ name, card: createOutputCard(name, () => labels) }));
  let sample = golden.first;
  /** @type {Model | null} */
  let model = null;
  let busy = false;
  let again = 0;
  /** @type {Map<string, Tensor>} */
  let latest = new Map();

  const run = element("button", { type: "button", class: "primary", disabled: true, click: () => void runOnce() }, "Run");
  const many = element("button", { type: "button", disabled: true, click: () => void runMany() }, `Run ${RUNS} times`);
  const live = element("input", { type: "checkbox" });
  const status = element("p", { class: "run-status soft", role: "status" });
  const problem = element("div", {});
  const timing = element("div", {});
  const results = element("div", { class: "stack" });
  const save = element("button", { type: "button", class: "quiet", hidden: true, click: download }, "Download as JSON");

  function noteChange() {
    if (live.checked) {
      clearTimeout(again);
      again = window.setTimeout(() => void runOnce(), SETTLE);
    }
  }

  function readInputs() {
    /** @type {Record<string, Given>} */
    const given = Object.create(null);
    for (const { port, card } of inputs) {
      const value = card.read();
      if (value) {
        given[port.name] = value;
      }
    }
    return given;
  }

  /** @param {Model} opened */
  async function call(opened) {
    const given = readInputs();
    const start = performance.now();
    const answers = await opened.run(given);
    /** @type {Map<string, Tensor>} */
    const read = new Map();
    for (const [name, tensor] of Object.entries(answers)) {
      const data = tensor.getData ? await tensor.getData() : tensor.data;
      read.set(name, { type: tensor.type, dims: tensor.dims, data: /** @type {Tensor["data"]} */ (data) });
    }
    const time = performance.now() - start;
    Object.values(answers).forEach((tensor) => tensor.dispose?.());
    return { read, time };
  }

  /** @param {(opened: Model) => Promise<void>} work */
  async function guarded(work) {
    if (!model || busy) {
      return;
    }
    setBusy(true);
    try {
      await work(model);
      refill(problem);
    } catch (error) {
      status.textContent = "";
      refill(problem, alertOf(error));
    } finally {
      setBusy(false);
    }
  }

  function runOnce() {
    return guarded(async (opened) => {
      status.textContent = "Running";
      const { read, time } = await call(opened);
      showOutputs(read);
      status.textContent = `Answered in ${formatMilliseconds(time)}`;
    });
  }

  function runMany() {
    return guarded(async (opened) => {
      /** @type {number[]} */
      const times = [];
      for (let count = 0; count < WARM_UP + RUNS; count += 1) {
        status.textContent = count < WARM_UP ? "Warming up" : `Run ${count - WARM_UP + 1} of ${RUNS}`;
        const { read, time } = await call(opened);
        if (count >= WARM_UP) {
          times.push(time);
        }
        if (count === WARM_UP + RUNS - 1) {
          showOutputs(read);
        }
        await new Promise((done) => setTimeout(done));
      }
      status.textContent = "";
      refill(timing, latencyView(times));
    });
  }

  /** @param {Map<string, Tensor>} read */
  function showOutputs(read) {
    latest = read;
    const reference = inputs.every(({ card }) => card.isSample()) ? sample : null;
    const shown = outputs.filter(({ name }) => read.has(name));
    shown.forEach(({ name, card }) => {
      const tensor = /** @type {Tensor} */ (read.get(name));
      card.show(tensor, unstable.includes(name) ? null : (reference?.outputs.get(name) ?? null));
    });
    refill(results, ...shown.map(({ card }) => card.element));
    save.hidden = false;
  }

  /** @param {boolean} now */
  function setBusy(now) {
    busy = now;
    run.disabled = now || !model;
    many.disabled = now || !model;
    run.setAttribute("aria-busy", String(now));
  }

  /** @param {number} index */
  async function takeSample(index) {
    try {
      sample = await golden.read(index);
      inputs.forEach(({ port, card }) => card.showSample(sample?.inputs.get(port.name) ?? null));
      refill(problem);
      noteChange();
    } catch (error) {
      refill(problem, alertOf(error));
    }
  }

  /** @param {string} text */
  function takeLabels(text) {
    labels = parseLabels(text);
    if (latest.size) {
      showOutputs(latest);
    }
  }

  function download() {
    const values = Object.fromEntries(
      [...latest].map(([name, { type, dims, data }]) => [name, { type, dims, data: Array.from(/** @type {ArrayLike<unknown>} */ (data), plainValue) }]),
    );
    const address = URL.createObjectURL(new Blob([JSON.stringify(values)], { type: "application/json" }));
    element("a", { href: address, download: "outputs.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }

  refill(place("inputs"), ...inputs.map(({ card }) => card.element));
  refill(place("outputs"), problem, timing, results, element("div", { class: "row" }, save), labelsEditor(takeLabels));
  refill(place("samples"), samplePicker(golden, (index) => void takeSample(index)));
  refill(place("run-bar"), run, many, element("label", { class: "inline" }, live, "run on every change"), status);
  refill(results, element("p", { class: "empty" }, "Outputs appear here. Run the model with the recorded sample, or give it your own input."));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      void runOnce();
    }
  });
  document.addEventListener("paste", (event) => {
    if (!event.defaultPrevented) {
      inputs.some(({ card }) => card.paste(event));
    }
  });

  return {
    /** @param {Model | null} opened */
    setModel(opened) {
      model = opened;
      setBusy(false);
    },
    runOnce,
  };
}

/**
 * @param {{ first: Sample | null, count: number }} golden
 * @param {(index: number) => void} taken
 */
function samplePicker(golden, taken) {
  if (!golden.first) {
    return null;
  }
  const options = Array.from({ length: golden.count }, (_, index) => ({ value: String(index), text: `golden sample ${index}` }));
  const select = choice(options, "0", (value) => taken(Number(value)), { "aria-label": "Golden sample" });
  const fillIn = element("button", { type: "button", click: () => taken(Number(select.value)) }, "Fill in");
  return element("div", { class: "row" }, select, fillIn);
}

/** @param {(text: string) => void} taken */
function labelsEditor(taken) {
  const area = element("textarea", { rows: 4, spellcheck: false, placeholder: "one label a line, or a JSON list", input: () => taken(area.value) });
  const take = async (/** @type {File} */ file) => {
    area.value = await file.text();
    taken(area.value);
  };
  const made = element(
    "details",
    { class: "labels" },
    element("summary", {}, "Names of the classes"),
    field("Labels", area),
    element("div", { class: "row" }, filePicker("Choose file…", ".txt,.json,.csv,text/*", (file) => void take(file))),
  );
  acceptDrops(made, (file) => void take(file));
  return made;
}

/** @param {unknown} value */
function plainValue(value) {
  if (typeof value === "bigint") {
    return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  }
  return typeof value === "number" && !Number.isFinite(value) ? showName(String(value)) : value;
}
