// Stands in for the rendered `golden.js` while the demo page is type-checked in its template.
import type { PackageData } from "../../../templates/web/package/loader/types.js";

export const assets: PackageData["assets"];
