// Asks the worker which way up pictures are. A picture is given away, not copied; each question has a number, and its answer
// the same.
const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
const pictures = document.querySelector("#pictures");
const state = document.querySelector("#state");
const answers = document.querySelector("#answers");

const waiting = new Map();
let count = 0;

worker.onerror = (event) => (state.textContent = `The worker failed: ${event.message}`);
worker.onmessage = ({ data: { kind, id, ...rest } }) => {
  if (kind === "progress") state.textContent = `Loading the model: ${rest.loaded} of ${rest.total} bytes`;
  if (kind === "failed") state.textContent = rest.message;
  if (kind === "ready") {
    state.textContent = `Ready, on ${rest.variant}.`;
    pictures.disabled = false;
  }
  if (kind === "answer") {
    waiting.get(id)(rest);
    waiting.delete(id);
  }
};

function ask(image) {
  const id = (count += 1);
  worker.postMessage({ id, image }, [image]);
  return new Promise((resolve) => waiting.set(id, resolve));
}

pictures.addEventListener("change", () => {
  answers.replaceChildren();
  for (const file of pictures.files) void show(file, answers.appendChild(document.createElement("li")));
});

async function show(file, line) {
  line.textContent = `${file.name}: …`;
  try {
    const { upright, turned, message } = await ask(await createImageBitmap(file));
    const words = turned > upright ? `upside down (${turned?.toFixed(3)})` : `upright (${upright?.toFixed(3)})`;
    line.textContent = `${file.name}: ${message ?? words}`;
  } catch (error) {
    line.textContent = `${file.name}: ${error.message}`;
  }
}
