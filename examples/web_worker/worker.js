// Has the model: the page gives it pictures, and gets its scores.
import { load } from "./orientation/index.js";
import { prepare } from "./prepare.js";

const loading = load({ onProgress: ({ loaded, total }) => postMessage({ kind: "progress", loaded, total }) });
loading.then(
  (model) => postMessage({ kind: "ready", variant: model.report.variant }),
  (error) => postMessage({ kind: "failed", message: error.message }),
);

onmessage = async ({ data: { id, image } }) => {
  try {
    const model = await loading;
    const outputs = await model.run({ x: prepare(image) });
    const [upright, turned] = outputs[Object.keys(outputs)[0]].data;
    postMessage({ kind: "answer", id, upright, turned });
  } catch (error) {
    postMessage({ kind: "answer", id, message: error.message });
  }
};
