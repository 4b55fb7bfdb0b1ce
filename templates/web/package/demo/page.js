/** The page of a bundle: loads the model, says how it runs here, tests it, and lets a person try it. */

import * as bundle from "./bundle.js";
import { element, place, refill } from "./elements.js";
import { formatBytes, plural, showName } from "./format.js";
import { createLoadCard } from "./load_card.js";
import { Playground } from "./playground.js";
import { alertOf, sentence } from "./problems.js";
import { createRunsCard } from "./runs_card.js";
import { createTestCard } from "./test_card.js";

/** @typedef {typeof import("./bundle.js")} Bundle */
/** @typedef {import("./bundle.js").Model} Model */

const LONGEST_NOTE = 600;

/** One model at a time, from the first byte to the last run. */
class Page {
  /** @param {Bundle} from */
  constructor(from) {
    this.bundle = from;
    /** @type {Model | null} */
    this.model = null;
    /** @type {Playground | null} */
    this.playground = null;
    /** @type {string | undefined} */
    this.variant = undefined;
    this.turn = 0;
    this.loading = this.createLoading();
    this.running = createRunsCard(place("runs"), (variant) => {
      this.variant = variant;
      void this.open();
    });
    this.test = createTestCard(place("test"), place("figures"), () => void this.runTest());
  }

  async start() {
    showFacts(this.bundle);
    showChoice(this.bundle);
    const bench = createBench(this.bundle).then((made) => (this.playground = made));
    void this.bundle.probe().then(
      (probed) => this.running.showVariants(probed, this.variant),
      () => {},
    );
    await this.open(bench);
  }

  /**
   * Load the variant that is wanted, in place of the one before.
   *
   * @param {Promise<unknown>} [bench] what has to be there before a person may use the model
   */
  async open(bench) {
    const mine = (this.turn += 1);
    await this.close();
    try {
      const model = await this.load(mine);
      if (mine !== this.turn) {
        await model.dispose();
        return;
      }
      this.show(model);
      await bench;
      await this.runTest();
    } catch (error) {
      if (mine === this.turn) {
        this.loading.showFailure();
        refill(place("failure"), alertOf(error, "The model cannot run here"));
      }
    }
  }

  async close() {
    const before = this.model;
    this.model = null;
    this.playground?.setModel(null);
    this.loading = this.createLoading();
    refill(place("failure"));
    showNotes([]);
    this.running.showNothing();
    this.test.showNothing();
    await before?.dispose().catch(() => {});
  }

  /** @param {number} mine */
  load(mine) {
    const loading = this.loading;
    return this.bundle.load({
      ...(this.variant ? { variant: this.variant } : {}),
      onProgress: (event) => mine === this.turn && loading.showProgress(event),
    });
  }

  /** @param {Model} model */
  show(model) {
    this.model = model;
    this.loading.showReady(model.report);
    this.running.showReport(model.report, this.variant !== undefined);
    showNotes(model.report.notes);
  }

  async runTest() {
    const model = this.model;
    if (!model) {
      return;
    }
    this.playground?.setModel(null, "Waiting for the self-test");
    this.test.showRunning();
    const show = await model.selfTest().then(
      (result) => () => this.test.showResult(result),
      (error) => () => this.test.showError(error),
    );
    if (model === this.model) {
      show();
      this.playground?.setModel(model);
    }
  }

  async clearCache() {
    try {
      await this.bundle.clearCache();
      this.loading.say("The cache of this bundle is empty: the next visit downloads it again.");
    } catch (error) {
      refill(place("failure"), alertOf(error, "The cache could not be cleared"));
    }
  }

  createLoading() {
    return createLoadCard(place("load"), { reload: () => void this.open(), clear: () => void this.clearCache() });
  }
}

/** @param {Bundle} bundle */
async function createBench({ config, openGolden }) {
  const golden = await openGolden().catch((error) => {
    refill(place("samples"), alertOf(error, "The recorded samples cannot be read"));
    return { first: null, synthetic: false, count: 0, read: async () => null };
  });
  return new Playground(config.signature, golden, config.unstable_outputs ?? []);
}

/** @param {Bundle} bundle */
function showFacts({ config, bundleSize, version }) {
  const { inputs, outputs } = config.signature;
  const variants = config.variants.map(({ name }) => showName(name, 24)).join(", ");
  const facts = [
    `${formatBytes(bundleSize())} in all`,
    `${plural(inputs.length, "input")}, ${plural(outputs.length, "output")}`,
    `${config.variants.length === 1 ? "variant" : "variants"} ${variants}`,
    `version ${showName(version, 32)}`,
  ];
  refill(place("facts"), ...facts.map((text) => element("li", {}, text)));
  place("model").textContent = showName(config.model);
  place("target").textContent = showName(config.target, 40);
}

/**
 * A bundle of several components shows one at a time: each has an address of its own.
 *
 * @param {Bundle} bundle
 */
function showChoice({ choice }) {
  if (!choice) return;
  const links = choice.names.map((name) => {
    const current = name === choice.chosen ? "page" : undefined;
    return element("a", { href: `?component=${name}`, "aria-current": current }, name);
  });
  refill(place("components"), ...links);
}

/** @param {readonly string[]} notes */
function showNotes(notes) {
  const list = place("notes");
  list.hidden = !notes.length;
  refill(list, ...notes.map((note) => element("li", {}, sentence(showName(note, LONGEST_NOTE)))));
}

/** Show the bundle: from here on the page looks after itself. */
export function openPage() {
  return new Page(bundle).start();
}
