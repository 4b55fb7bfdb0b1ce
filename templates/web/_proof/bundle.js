// The bundle as a contender: opened as a page opens it that was visited before.
import { offer } from "./contenders.js";
import { openMember } from "./members.js";
import { readSamples } from "./sample.js";

const PACKAGE = "/index.js";

offer(async ({ component, variant }) => {
  const [inputs] = (await readSamples(component, 1)).samples;
  /** @type {import("./members.js").Member} */
  let member;
  return {
    build: () => member.report.build,
    async open() {
      member = await openMember(await import(PACKAGE), { component, variant });
      if (member.report.variant !== variant) throw new Error(`variant ${member.report.variant} was opened in its place`);
    },
    async call() {
      for (const output of Object.values(await member.model.run(inputs))) {
        // An answer that lies in the GPU's memory is none yet.
        if (output?.location !== undefined && output.location !== "cpu") await output.getData();
        output?.dispose?.();
      }
    },
    async close() {
      await member?.close();
    },
  };
});
