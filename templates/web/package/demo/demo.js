/** The page of a bundle: loads the model, says how it runs here, tests it, and lets a person try it. */

import { element, place, refill } from "./elements.js";
import { formatBytes, plural, showName } from "./format.js";
import { createLoadCard } from "./load_card.js";
import { createPlayground } from "./playground.js";
import { alertOf, sentence } from "./problems.js";
import { createRunsCard } from "./runs_card.js";
import { createTestCard } from "./test_card.js";

/** @typedef {typeof import("./bundle.js")} Bundle */
/** @typedef {import("./bundle.js").Model} Model */
/** @typedef {ReturnType<typeof createPlayground>} Playground */

const LONGEST_NOTE = 600;

/** @param {Bundle} bundle */
async function start(bundle) {
  /** @type {Model | null} */
  let model = null;
  /** @type {Playground | null} */
  let playground = null;
  /** @type {string | undefined} */
  let taken;
  let turn = 0;

  const loading = createLoadCard(place("load"), { reload: () => void open(), clear: () => void clear() });
  const running = createRunsCard(place("runs"), (variant) => {
    taken = variant;
    void open();
  });
  const test = createTestCard(place("test"), place("figures"), () => void runTest());
  const reload = () => createLoadCard(place("load"), { reload: () => void open(), clear: () => void clear() });
  let card = loading;

  showFacts(bundle);
  const ready = prepare(bundle).then((made) => (playground = made));
  void bundle.probe().then((probed) => running.showVariants(probed, taken), () => {});
  await open(ready);

  /** @param {Promise<unknown>} [first] what has to be there before the page may use the model */
  async function open(first) {
    const mine = (turn += 1);
    playground?.setModel(null);
    void model?.dispose().catch(() => {});
    model = null;
    card = mine === 1 ? card : reload();
    reset();
    try {
      const opened = await bundle.load({ ...(taken ? { variant: taken } : {}), onProgress: (event) => mine === turn && card.showProgress(event) });
      if (mine !== turn) {
        await opened.dispose();
        return;
      }
      model = opened;
      card.showReady(opened.report);
      running.showReport(opened.report);
      showNotes(opened.report.notes);
      await first;
      await runTest();
    } catch (error) {
      if (mine === turn) {
        fail(error);
      }
    }
  }

  function reset() {
    refill(place("failure"));
    showNotes([]);
    running.showNothing();
    test.showNothing();
  }

  /** @param {unknown} error */
  function fail(error) {
    card.showFailure();
    refill(place("failure"), alertOf(error, "The model cannot run here"));
  }

  async function runTest() {
    const tested = model;
    if (!tested) {
      return;
    }
    playground?.setModel(null);
    test.showRunning();
    try {
      const result = await tested.selfTest();
      if (tested === model) {
        test.showResult(result);
      }
    } catch (error) {
      if (tested === model) {
        test.showError(error);
      }
    } finally {
      if (tested === model) {
        playground?.setModel(model);
      }
    }
  }

  async function clear() {
    try {
      await bundle.clearCache();
      card.say("The cache of this bundle is empty; the next visit downloads it again");
    } catch (error) {
      refill(place("failure"), alertOf(error, "The cache could not be cleared"));
    }
  }
}

/** @param {Bundle} bundle */
async function prepare(bundle) {
  const { config } = bundle;
  const golden = await bundle.openGolden().catch((error) => {
    refill(place("outputs"), alertOf(error, "The recorded samples cannot be read"));
    return null;
  });
  const source = golden ?? { first: null, synthetic: false, count: 0, read: async () => null };
  return createPlayground(config.signature, source, config.unstable_outputs ?? []);
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
  place("runtime").textContent = config.variants[0]?.requires.runtime ?? "";
}

/** @param {readonly string[]} notes */
function showNotes(notes) {
  const list = place("notes");
  list.hidden = !notes.length;
  refill(list, ...notes.map((note) => element("li", {}, sentence(showName(note, LONGEST_NOTE)))));
}

import("./bundle.js").then(start).catch((error) => {
  place("load").dataset["state"] = "failed";
  refill(place("load"), element("h2", { class: "label" }, "Load"), element("p", { class: "value" }, "Not loaded"));
  refill(place("failure"), alertOf(error, "The files of this bundle could not be read"));
});
