// Tells whether a line of text stands upside down. What the model takes is what it was trained with: 48 by 192 pixels, blue
// first, values from -1 to 1, the line's own ratio kept and zeros to its right.
import { load } from "./orientation/index.js";

const HEIGHT = 48;
const WIDTH = 192;
const picture = document.querySelector("#picture");
const answer = document.querySelector("#answer");

const model = await load({ onProgress: ({ loaded, total }) => (answer.textContent = `Loading the model: ${loaded} of ${total} bytes`) });
answer.textContent = `Ready, on ${model.report.variant}.`;
picture.disabled = false;
picture.addEventListener("change", async () => (answer.textContent = await judge(picture.files[0])));

async function judge(file) {
  const { data, dims } = prepare(await createImageBitmap(file));
  const outputs = await model.run({ x: { data, dims } });
  const [upright, turned] = outputs[Object.keys(outputs)[0]].data;
  return turned > upright ? `Upside down (${turned.toFixed(3)})` : `Upright (${upright.toFixed(3)})`;
}

function prepare(image) {
  const width = Math.min(WIDTH, Math.ceil((HEIGHT * image.width) / image.height));
  const canvas = new OffscreenCanvas(width, HEIGHT);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0, width, HEIGHT);
  const pixels = context.getImageData(0, 0, width, HEIGHT).data;
  const data = new Float32Array(3 * HEIGHT * WIDTH);
  for (let row = 0; row < HEIGHT; row++) {
    for (let column = 0; column < width; column++) {
      for (let channel = 0; channel < 3; channel++) {
        const value = pixels[4 * (row * width + column) + 2 - channel];
        data[(channel * HEIGHT + row) * WIDTH + column] = (value / 255 - 0.5) / 0.5;
      }
    }
  }
  return { data, dims: [1, 3, HEIGHT, WIDTH] };
}
