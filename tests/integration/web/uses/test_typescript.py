"""TypeScript knows the model's own names and types: what is wrong is an error before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.javascript import find_tool, run

CONSUMER = """
import { clearCache, InputError, load, probe, type Model, type ModelOutputs, type ProgressEvent } from "model";

import { load as loadWasm, type Variant } from "model/wasm";
import { selfTest } from "model/self-test";

const show = (event: ProgressEvent): number => event.loaded / event.total;
const model: Model = await load({ variant: "wasm", threads: 2, onProgress: show, signal: AbortSignal.timeout(1000) });
const outputs: ModelOutputs = await model.run({ image: { data: new Float32Array(768), dims: [1, 3, 16, 16] } });
const values: Float32Array = await outputs.scores.getData();
const again = await model.run({ image: new Float32Array(768) }, { signal: AbortSignal.timeout(1000) });
const chained = await model.run({ image: again.scores });
const passed: boolean = (await model.selfTest()).passed;
const reasons: string[] = (await probe()).map(({ name, reason }) => `${name}: ${reason}`);
const variant: string = model.report.variant;
const explain = (error: unknown): string => (error instanceof InputError ? error.hint : "");
const only: Variant = "wasm";
const narrow: Model = await loadWasm({ variant: only, threads: 1 });
const tested: boolean = (await selfTest(narrow)).passed;
await clearCache();
await model.dispose();
export { chained, explain, passed, reasons, tested, values, variant };

// @ts-expect-error a wrong name
await model.run({ picture: new Float32Array(768) });
// @ts-expect-error one name too many
await model.run({ image: new Float32Array(768), more: new Float32Array(1) });
// @ts-expect-error no input at all
await model.run({});
// @ts-expect-error the wrong type of values
await model.run({ image: new Int32Array(768) });
// @ts-expect-error plain numbers
await model.run({ image: [1, 2, 3] });
// @ts-expect-error an output that the model has not
outputs.labels;
// @ts-expect-error a variant that the bundle has not
await load({ variant: "npu" });
// @ts-expect-error a variant that the import has not
await loadWasm({ variant: "webgpu" });
// @ts-expect-error a model is given, not the function that opens one
await selfTest(loadWasm);
// @ts-expect-error a misspelt option
await load({ thread: 2 });
"""

STRICT = ("--noEmit", "--strict", "--exactOptionalPropertyTypes", "--target", "es2023", "--lib", "es2023,dom")


@pytest.mark.parametrize(
    "resolution",
    [("--module", "esnext", "--moduleResolution", "bundler"), ("--module", "nodenext")],
    ids=["bundler", "nodenext"],
)
def test_names_and_types_are_checked(app: Path, resolution: tuple[str, ...]) -> None:
    compiler = find_tool("typescript/bin/tsc")
    (app / "consumer.ts").write_text(CONSUMER, "utf-8")
    run((*compiler, *STRICT, *resolution, "consumer.ts"), app)
