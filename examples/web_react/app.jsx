import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { load } from "./orientation/index.js";
import { prepare } from "./prepare.js";
import { useModel } from "./use_model.js";

function WhichWayUp() {
  const { model, error, progress } = useModel(load);
  const [answer, setAnswer] = useState(null);

  async function judge(file) {
    try {
      const outputs = await model.run({ x: prepare(await createImageBitmap(file)) });
      const [upright, turned] = outputs[Object.keys(outputs)[0]].data;
      setAnswer(turned > upright ? `Upside down (${turned.toFixed(3)})` : `Upright (${upright.toFixed(3)})`);
    } catch (failure) {
      setAnswer(failure.message);
    }
  }

  return (
    <>
      <label>
        A picture of a line of text:{" "}
        <input type="file" accept="image/*" disabled={!model} onChange={(event) => event.target.files[0] && judge(event.target.files[0])} />
      </label>
      <p role="status">{answer ?? describe(model, error, progress)}</p>
    </>
  );
}

function describe(model, error, progress) {
  if (error) return error.message;
  if (model) return `Ready, on ${model.report.variant}.`;
  return progress ? `Loading the model: ${progress.loaded} of ${progress.total} bytes` : "Loading the model…";
}

createRoot(document.querySelector("#root")).render(<StrictMode><WhichWayUp /></StrictMode>);
