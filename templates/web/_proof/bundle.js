// The bundle as a contender: opened as a page opens it that was visited before.
import { offer } from "./contenders.js";
import { openMember } from "./members.js";
import { readSample } from "./sample.js";

const PACKAGE = "/index.js";

offer(async ({ component, variant }) => {
  const inputs = await readSample(component);
  /** @type {any} */
  let model;
  return {
    build: () => model.report.build,
    async open() {
      model = await openMember(await import(PACKAGE), { component, variant });
      if (model.report.variant !== variant) throw new Error(`variant ${model.report.variant} was opened in its place`);
    },
    async call() {
      for (const output of Object.values(await model.run(inputs))) {
        // An answer that lies in the GPU's memory is none yet.
        if (output?.location !== undefined && output.location !== "cpu") await output.getData();
        output?.dispose?.();
      }
    },
    async close() {
      await model?.close();
    },
  };
});
