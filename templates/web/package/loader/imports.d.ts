/** Types of the loader that tell apart the imports of a package, and what each of them may have. */

import type { ComponentData, Inputs, Model, Outputs, Platform, RunOptions, SelfTest, Stream } from "./types.js";

/** The import of the package that an application uses, the whole package, and the import of each variant by component. */
export interface Imports {
  name: string;
  whole: string;
  variants: Record<string, Record<string, string>>;
}

/** What a self-test does with an open model. */
export type Test = (model: Model, data: ComponentData, platform: Platform) => Promise<SelfTest>;

export type StreamType = new (
  data: ComponentData,
  platform: Platform,
  run: (inputs: Inputs, options?: RunOptions) => Promise<Outputs>,
) => Stream;
