/** The playground: inputs on one side, outputs on the other, and the buttons that run the model. */

import { element, place, refill } from "./elements.js";
import { formatMilliseconds } from "./format.js";
import { createInputCard } from "./input_card.js";
import { latencyView } from "./latency_view.js";
import { OutputSide } from "./output_side.js";
import { alertOf } from "./problems.js";
import { createRunBar } from "./run_bar.js";
import { callModel, timeRuns } from "./running.js";
import { createSamplePicker } from "./sample_picker.js";
import { Sizes } from "./shapes.js";

/** @typedef {import("./bundle.js").Given} Given */
/** @typedef {import("./bundle.js").Golden} Golden */
/** @typedef {import("./bundle.js").Model} Model */
/** @typedef {import("./bundle.js").Port} Port */

/** Milliseconds without a change after which the model runs again. */
const SETTLE = 120;

export class Playground {
  /**
   * @param {{ inputs: readonly Port[], outputs: readonly Port[] }} signature
   * @param {Golden} golden
   * @param {readonly string[]} unstable outputs that differ from run to run
   */
  constructor(signature, golden, unstable) {
    this.golden = golden;
    this.sample = golden.first;
    /** @type {Model | null} */
    this.model = null;
    this.busy = false;
    this.stale = false;
    this.timer = 0;
    this.inputs = this.createInputs(signature.inputs);
    this.outputs = new OutputSide(signature.outputs, unstable);
    this.bar = createRunBar({ once: () => void this.runOnce(), many: () => void this.runMany() });
    this.arrange();
    this.listen();
  }

  /**
   * @param {Model | null} model null while none may be run
   * @param {string} [reason] why
   */
  setModel(model, reason = "") {
    this.model = model;
    this.setBusy(false);
    this.bar.say(reason);
  }

  runOnce() {
    return this.guard(async (model) => {
      this.bar.say("Running");
      const { answers, time } = await callModel(model, this.readInputs());
      this.outputs.show(answers, this.reference());
      this.bar.say(`Finished in ${formatMilliseconds(time)}`);
    });
  }

  runMany() {
    return this.guard(async (model) => {
      const { answers, times } = await timeRuns(model, () => this.readInputs(), this.bar.say);
      this.outputs.show(answers, this.reference());
      this.outputs.showTiming(latencyView(times));
      this.bar.say("");
    });
  }

  /**
   * One run at a time; what goes wrong is shown where the outputs would be.
   *
   * @param {(model: Model) => Promise<void>} work
   */
  async guard(work) {
    if (!this.model || this.busy) {
      this.stale = Boolean(this.model);
      return;
    }
    this.setBusy(true);
    try {
      await work(this.model);
      this.outputs.showProblem(null);
    } catch (error) {
      this.bar.say("");
      this.outputs.showProblem(alertOf(error));
    } finally {
      this.setBusy(false);
      this.catchUp();
    }
  }

  /** An input changed while the model ran: run once more. */
  catchUp() {
    const again = this.stale && this.bar.isLive();
    this.stale = false;
    if (again) {
      this.noteChange();
    }
  }

  noteChange() {
    if (this.bar.isLive()) {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => void this.runOnce(), SETTLE);
    }
  }

  /** @param {boolean} busy */
  setBusy(busy) {
    this.busy = busy;
    this.bar.setBusy(busy, Boolean(this.model));
  }

  /** What the original model answered, while all inputs are those of a recorded sample. */
  reference() {
    return this.inputs.every(({ card }) => card.isSample()) ? this.sample : null;
  }

  readInputs() {
    /** @type {Record<string, Given>} */
    const given = Object.create(null);
    for (const { port, card } of this.inputs) {
      const value = card.read();
      if (value) {
        given[port.name] = value;
      }
    }
    return given;
  }

  /** @param {number} index */
  async takeSample(index) {
    try {
      this.sample = await this.golden.read(index);
      this.inputs.forEach(({ port, card }) => card.showSample(this.sample?.inputs.get(port.name) ?? null));
      this.outputs.showProblem(null);
      this.noteChange();
    } catch (error) {
      this.outputs.showProblem(alertOf(error));
    }
  }

  /** @param {readonly Port[]} ports */
  createInputs(ports) {
    const example = (/** @type {string} */ name) => this.golden.first?.inputs.get(name) ?? null;
    const sizes = new Sizes(ports, (name) => example(name)?.dims ?? null);
    const { synthetic } = this.golden;
    const changed = () => this.noteChange();
    return ports.map((port) => ({
      port,
      card: createInputCard({ port, sizes, example: example(port.name), synthetic, changed }),
    }));
  }

  arrange() {
    refill(place("inputs"), ...this.inputs.map(({ card }) => card.element));
    if (!this.inputs.length) {
      refill(place("inputs"), element("p", { class: "empty" }, "This model has no inputs."));
    }
    if (this.golden.first) {
      refill(
        place("samples"),
        createSamplePicker(this.golden.count, (index) => void this.takeSample(index)),
      );
    }
  }

  listen() {
    document.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        void this.runOnce();
      }
    });
    document.addEventListener("paste", (event) => {
      if (!event.defaultPrevented) {
        this.inputs.some(({ card }) => card.paste(event));
      }
    });
  }
}
