"""The rendered part of a package: what it looks like, and that compilers take it."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from bundler.emitters.contract import EmitRequest
from bundler.model.runtime import RuntimeComponent
from bundler.support.data import data_root
from tests.support.bundles import sole_component
from tests.unit.emitters.web.conftest import with_web
from tests.unit.emitters.web.rendered import render_all, with_config, with_mixed

FILES = ("package.json", "index.js", "index.d.ts", "node.js", "runtime.js", "README.md")


@pytest.mark.parametrize("file", FILES)
def test_a_plain_model(request_: EmitRequest, file: str, snapshot: SnapshotAssertion) -> None:
    assert render_all(with_config(request_, **_strip(sole_component(request_))))[file] == snapshot


def _strip(component: RuntimeComponent) -> dict[str, Any]:
    """Changes that leave out digests and files."""
    variants = tuple(dataclasses.replace(variant, files=()) for variant in component.variants)
    return {"model_digest": "0" * 64, "golden_digest": "0" * 64, "variants": variants}


def test_declarations_of_every_kind_of_value(
    request_: EmitRequest, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    assert render_all(with_mixed(request_, tmp_path))["index.d.ts"] == snapshot


def test_the_readme_of_the_packed_form(request_: EmitRequest, snapshot: SnapshotAssertion) -> None:
    request = with_web(with_config(request_, fallback="strict"), precompressed=True)
    assert render_all(dataclasses.replace(request, format="tgz"))["README.md"] == snapshot


def test_the_readme_shows_how_to_give_each_input(
    request_: EmitRequest, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    text = render_all(with_mixed(request_, tmp_path))["README.md"]
    assert text[text.index("const outputs") : text.index("Vite needs")] == snapshot


def test_the_modules_fit_the_loader(request_: EmitRequest, tmp_path: Path, tsc: str) -> None:
    shutil.copytree(data_root("templates") / "web" / "package", tmp_path, dirs_exist_ok=True)
    for name, text in render_all(request_).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "index.d.ts").unlink()
    (tmp_path / "use.ts").write_text('import "./index.js";')
    compile_(tsc, tmp_path, "--allowJs", "--checkJs", "--moduleResolution", "bundler", "--module", "esnext")


USE = """
import { BundleError, clearCache, load, probe, type Model, type ModelInputs } from "mixed";

const model: Model = await load({ variant: "wasm", onProgress: ({ loaded, total }) => console.log(loaded / total) });
const inputs: ModelInputs = {
  "input:0": { data: new Float32Array(6), dims: [1, 3, 2] },
  class: ["a"],
  ids: new BigInt64Array(128),
  half: new Uint16Array(4),
};
const outputs = await model.run(inputs);
const scores: Float32Array = outputs.scores.data;
const mask: Uint8Array = await outputs.mask.getData();
await model.run({ ...inputs, "input:0": outputs.scores });
const passed: boolean = (await model.selfTest()).passed;
console.log(scores, mask, passed, model.report.rejected, (await probe())[0]?.reason);
await model.dispose();
await clearCache();
// @ts-expect-error an input that the model lacks
await model.run({ ...inputs, other: new Float32Array(1) });
// @ts-expect-error an input is missing
await model.run({ class: ["a"] });
// @ts-expect-error values of another type
await model.run({ ...inputs, ids: new Float32Array(128) });
// @ts-expect-error a variant that the bundle lacks
await load({ variant: "cuda" });
try { await load(); } catch (error) { if (error instanceof BundleError) console.log(error.why, error.hint); }
"""


@pytest.mark.parametrize("resolution", ["bundler", "nodenext"])
def test_typescript_knows_the_names(request_: EmitRequest, tmp_path: Path, tsc: str, resolution: str) -> None:
    package = tmp_path / "node_modules" / "mixed"
    shutil.copytree(data_root("templates") / "web" / "package", package)
    for name, text in render_all(with_mixed(request_, tmp_path, name="mixed")).items():
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text(text, "utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "use.ts").write_text(USE)
    compile_(
        tsc,
        tmp_path,
        "--moduleResolution",
        resolution,
        "--module",
        "nodenext" if resolution == "nodenext" else "esnext",
    )


def compile_(tsc: str, folder: Path, *options: str) -> None:
    rules = ("--strict", "--noEmit", "--target", "es2023", "--lib", "es2023,dom", "--types", "")
    done = subprocess.run([tsc, *rules, *options, "use.ts"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
