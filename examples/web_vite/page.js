// Tells whether a line of text stands upside down.
import { load } from "orientation/wasm";
import { prepare } from "./prepare.js";

const picture = document.querySelector("#picture");
const answer = document.querySelector("#answer");

const model = await load({ onProgress: ({ loaded, total }) => (answer.textContent = `Loading the model: ${loaded} of ${total} bytes`) });
answer.textContent = `Ready, on ${model.report.variant}.`;
picture.disabled = false;
picture.addEventListener("change", async () => (answer.textContent = await judge(picture.files[0])));

async function judge(file) {
  const outputs = await model.run({ x: prepare(await createImageBitmap(file)) });
  const [upright, turned] = outputs[Object.keys(outputs)[0]].data;
  return turned > upright ? `Upside down (${turned.toFixed(3)})` : `Upright (${upright.toFixed(3)})`;
}
