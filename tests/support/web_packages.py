"""Packages that keep a web bundle's contract without a runtime: their `index.js` says what a test wants it to say."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from bundler.model.artifacts import FileRecord
from bundler.model.codec import encode
from bundler.model.runtime import (
    RUNTIME_SCHEMA,
    SOLE,
    Compatibility,
    Gate,
    ProviderEntry,
    RuntimeComponent,
    RuntimeConfig,
    RuntimeVariant,
    Tolerance,
)
from bundler.model.signature import Port, Signature, ValueType

MODEL = FileRecord(path="models/model.onnx", size=0, sha256=hashlib.sha256(b"").hexdigest())

LOADER = """
import { config } from "./runtime.js";
const behaviours = %s;
const values = new Float32Array(2);
const figures = { name: "y", equal: false, max_absolute: 1e-7, mean_absolute: 1e-8, max_relative: Infinity, cosine: 1,
  sqnr_db: null, top1_agreement: null, mismatch: null };
export const probe = async () => Object.entries(behaviours).map(([name, { unavailable }]) =>
  ({ name, available: !unavailable, reason: unavailable ?? "" }));
export async function load({ variant }) {
  const behaviour = behaviours[variant];
  if (behaviour.code) await (0, globalThis.behaviours[behaviour.code])();
  if (behaviour.throws) {
    throw Object.assign(new Error(behaviour.throws), { name: "IntegrityError", hint: "build it again" });
  }
  const [component] = config.components;
  const model = {
    ...component.signature,
    report: { variant: behaviour.opens ?? variant, build: "wasm", providers: ["wasm"], threads: behaviour.threads ?? 1,
      softwareAdapter: behaviour.software ?? null, rejected: {}, notes: [], isolated: crossOriginIsolated },
    selfTest: async () => ({ passed: !behaviour.faults, samples: behaviour.samples ?? 3, synthetic: true,
      faults: behaviour.faults ?? [], outputs: (behaviour.outputs ?? [{}]).map((told) => ({ ...figures, ...told })) }),
    testWith: (test) => test(model, { component }),
    run: async () => ({ y: { type: "float32", dims: [2], getData: async () => values, dispose: () => {} } }),
    dispose: async () => {},
  };
  return model;
}
"""

SAMPLES = """
export const openGolden = async () => ({ samples: [{ inputs: {} }], readAll: async () => new Map() });
"""

CODES = """
globalThis.behaviours = {
  // A tab that runs out of memory: the heap of a page has a limit, and a page that exceeds it is ended.
  exhaust: () => { const kept = []; for (;;) kept.push(new Array(1e6).fill(Math.random())); },
  inline: async () => {
    const script = document.createElement("script");
    script.textContent = "globalThis.inlined = true";
    document.head.append(script);
    await new Promise((resolve) => setTimeout(resolve, 50));
  },
  elsewhere: () => fetch("https://example.invalid/"),
  needIsolation: () => { if (!crossOriginIsolated) throw new Error("not isolated"); },
};
"""


def write_package(
    folder: Path, behaviours: dict[str, dict[str, object]], *, output: str = "y", unjudged: str = ""
) -> Path:
    """A package in `folder` with one variant for each behaviour, of a model with one `output`."""
    (folder / "payload" / "models").mkdir(parents=True)
    (folder / "payload" / "golden").mkdir()
    known = {"name": output, "elements": 6, "peak": 2.0, "quiet_peak": 1.0, "signal": 6.0, "unjudged": unjudged}
    index = {"outputs": [known], "samples": [{"name": f"seed-{number}", "outputs": {}} for number in range(3)]}
    (folder / "payload" / "golden" / "index.json").write_text(json.dumps(index), "utf-8")
    (folder / "payload" / MODEL.path).write_bytes(b"")
    config = encode(make_config(tuple(behaviours), output))
    (folder / "payload" / "runtime.json").write_text(json.dumps(config), "utf-8")
    runtime = f"export const config = JSON.parse({json.dumps(json.dumps(config))});\n"
    (folder / "runtime.js").write_text(runtime + "export const assets = {};\nexport const builds = {};\n", "utf-8")
    (folder / "golden.js").write_text("export const assets = {};\n", "utf-8")
    (folder / "loader").mkdir()
    (folder / "loader" / "browser.js").write_text("export const browser = {};\n", "utf-8")
    (folder / "loader" / "golden.js").write_text(SAMPLES, "utf-8")
    (folder / "codes.js").write_text(CODES, "utf-8")
    (folder / "index.js").write_text('import "./codes.js";' + LOADER % json.dumps(behaviours), "utf-8")
    return folder


def make_config(variants: tuple[str, ...], output: str = "y") -> RuntimeConfig:
    """The least that a configuration may say."""
    component = RuntimeComponent(
        name=SOLE,
        model="tiny",
        model_digest="0" * 64,
        signature=Signature(
            inputs=(), outputs=(Port(name=output, type=ValueType(element_type="float32", shape=(2,))),)
        ),
        variants=tuple(_make_variant(name) for name in variants),
        golden="golden",
        golden_digest="0" * 64,
    )
    return RuntimeConfig(
        schema=RUNTIME_SCHEMA, name="tiny", target="web-wasm", components=(component,), fallback="report"
    )


def _make_variant(name: str) -> RuntimeVariant:
    builds = ("jspi", "asyncify") if name == "webgpu" else ("wasm",)
    provider = {"webgpu": "webgpu", "lacking": "webnn"}.get(name, "wasm")
    return RuntimeVariant(
        name=name,
        model=MODEL.path,
        files=(MODEL,),
        providers=(ProviderEntry(name=provider, options={}, device="gpu-buffer" if name == "webgpu" else None),),
        session={},
        session_config={},
        disabled_optimizers=(),
        requires=Compatibility(systems=("Emscripten",), machines=("wasm32",), runtime="1.30.0"),
        gate=Gate(default=Tolerance(absolute=1e-5, relative=1e-4)),
        builds=builds,
    )
