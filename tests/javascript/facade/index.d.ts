// Stands in for the rendered `index.js` while the demo page is type-checked in its template.
import type { LoadOptions, Model, VariantState } from "../../../templates/web/package/loader/types.js";

export * from "../../../templates/web/package/loader/errors.js";
export function load(options?: LoadOptions): Promise<Model>;
export function probe(): Promise<VariantState[]>;
export function clearCache(): Promise<void>;
