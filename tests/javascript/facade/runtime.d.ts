// Stands in for the rendered `runtime.js` while loader and demo page are type-checked in their templates.
import type { PackageData } from "../../../templates/web/package/loader/types.js";

export const config: PackageData["config"];
export const assets: PackageData["assets"];
export const builds: PackageData["builds"];
export const identity: PackageData["identity"];
export const imports: PackageData["imports"];
export const kept: PackageData["kept"];
