/** One output of the model: what it says, in the view that suits it, with its figures. */

import { element, refill, segments } from "./elements.js";
import { chooseViews, greatestDifference, statistics } from "./figures.js";
import { describeShape, formatCount, formatNumber, showName } from "./format.js";
import { curveView, heatView, numberView, pictureView, tableView, textView } from "./views.js";
import { scoresView } from "./scores_view.js";
import { decode } from "./numbers.js";
import { fact } from "./runs_card.js";

/** @typedef {import("./bundle.js").Tensor} Tensor */
/** @typedef {import("./figures.js").View} View */

/** @type {Readonly<Record<View, string>>} */
const TITLES = {
  scores: "Scores",
  number: "Number",
  picture: "Picture",
  heat: "Heat map",
  curve: "Curve",
  text: "Text",
  table: "Values",
};

/**
 * Cards are kept from run to run, so that the view which a person chose stays.
 *
 * @param {import("./bundle.js").Port} port
 * @param {() => readonly string[]} labels
 */
export function createOutputCard({ name, type: { shape } }, labels) {
  /** @type {View | null} */
  let chosen = null;
  const type = element("span", { class: "type mono" });
  const tabs = element("div", {});
  const body = element("div", {});
  const facts = element("dl", { class: "facts strip" });
  const title = element("h4", {}, element("bdi", { class: "mono" }, showName(name)));
  const made = element("section", { class: "port", "aria-label": `Output ${showName(name)}` });
  refill(made, element("div", { class: "port-head" }, title, type), tabs, body, facts);

  /**
   * @param {Tensor} tensor
   * @param {Tensor | null} recorded what the original model answered to the same inputs
   */
  function show(tensor, recorded) {
    const views = chooseViews(tensor.type, tensor.dims, shape);
    const numbers = Array.isArray(tensor.data) ? null : decode(tensor.type, tensor.data);
    type.textContent = `${tensor.type}${describeShape(tensor.dims)}`;
    const view = chosen && views.includes(chosen) ? chosen : (views[0] ?? "table");
    const options = views.map((value) => ({ value, text: TITLES[value] }));
    const picked = (/** @type {string} */ value) => {
      chosen = /** @type {View} */ (value);
      refill(body, viewOf(chosen, tensor, numbers, labels()));
    };
    refill(tabs, options.length > 1 ? segments(`View of output ${showName(name)}`, options, view, picked) : null);
    refill(body, viewOf(view, tensor, numbers, labels()));
    refill(facts, ...(numbers ? factsOf(numbers, recorded) : []));
  }

  return {
    element: made,
    show,
    takesLabels: (/** @type {Tensor} */ { type: kind, dims }) => chooseViews(kind, dims, shape).includes("scores"),
  };
}

/**
 * @param {View} view
 * @param {Tensor} tensor
 * @param {Float64Array | null} numbers
 * @param {readonly string[]} labels
 */
function viewOf(view, tensor, numbers, labels) {
  if (!numbers) {
    return textView(/** @type {string[]} */ (tensor.data));
  }
  /** @type {Record<View, () => HTMLElement>} */
  const views = {
    scores: () => scoresView(numbers, tensor.dims, labels),
    number: () => numberView(numbers[0]),
    picture: () => pictureView(numbers, tensor.dims),
    heat: () => heatView(numbers, tensor.dims),
    curve: () => curveView(numbers, tensor.dims),
    text: () => tableView(numbers, tensor.dims),
    table: () => tableView(numbers, tensor.dims),
  };
  return views[view]();
}

/**
 * @param {Float64Array} numbers
 * @param {Tensor | null} recorded
 */
function factsOf(numbers, recorded) {
  const { least, most, mean, odd } = statistics(numbers);
  const reference = recorded && !Array.isArray(recorded.data) ? decode(recorded.type, recorded.data) : null;
  const off = greatestDifference(numbers, reference);
  return [
    fact("Values", formatCount(numbers.length)),
    fact("Min", formatNumber(least)),
    fact("Max", formatNumber(most)),
    fact("Mean", formatNumber(mean)),
    odd ? fact("Not finite", formatCount(odd)) : null,
    off === null ? null : fact("Off the reference by", off ? formatNumber(off) : "nothing"),
  ];
}
