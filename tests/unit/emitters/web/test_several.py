"""The package of a bundle of several components: its rendered part, and what it shares."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from bundler.emitters.contract import EmitRequest
from bundler.emitters.web.emitter import EMITTER
from bundler.emitters.web.names import name_types
from bundler.model.proof import sum_first_visit
from bundler.support.data import data_root
from tests.support import models
from tests.support.bundles import combine_requests
from tests.support.web_bundles import make_web_request
from tests.unit.emitters.web.conftest import evaluate
from tests.unit.emitters.web.rendered import render_all
from tests.unit.emitters.web.test_generated_code import compile_

VARIANTS = ("webgpu", "wasm")


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> EmitRequest:
    detect = make_web_request(models.cnn(), tmp_path_factory.mktemp("detect"), VARIANTS, name="Finder")
    read = make_web_request(models.mlp(), tmp_path_factory.mktemp("read"), VARIANTS, name="Reader")
    return combine_requests({"detect": detect, "read": read}, name="ocr")


@pytest.mark.parametrize("file", ["index.js", "index.d.ts", "node.js", "README.md", "demo/index.html"])
def test_the_rendered_files(several: EmitRequest, file: str, snapshot: SnapshotAssertion) -> None:
    assert render_all(several)[file] == snapshot


USE = """
import { load, probe, type Bundle, type DetectInputs } from "ocr";

const bundle: Bundle = await load({ only: ["detect"], lazy: true, variants: { detect: "wasm" } });
const inputs: DetectInputs = { image: { data: new Float32Array(768), dims: [1, 3, 16, 16] } };
const scores: Float32Array = (await bundle.detect.run(inputs)).scores.data;
const passed: boolean | undefined = (await bundle.selfTest()).components.read?.passed;
console.log(scores, passed, bundle.report.detect?.variant, (await probe()).read[0]?.reason, bundle.read.preprocessing);
await bundle.close();
// @ts-expect-error a component that the bundle lacks
await bundle.find.run({});
// @ts-expect-error and no name of one
await load({ only: ["find"] });
// @ts-expect-error a variant that the component lacks
await load({ variants: { detect: "cuda" } });
// @ts-expect-error the bundle is closed as a whole
await bundle.detect.dispose();
// @ts-expect-error an input is missing
await bundle.detect.run({});
"""


def test_typescript_knows_the_components(several: EmitRequest, tmp_path: Path, tsc: str) -> None:
    package = tmp_path / "node_modules" / "ocr"
    shutil.copytree(data_root("templates") / "web" / "package", package)
    for name, text in render_all(several).items():
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text(text, "utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "use.ts").write_text(USE)
    compile_(tsc, tmp_path, "--moduleResolution", "bundler", "--module", "esnext")


def test_each_has_its_golden_set_and_models_and_all_share_the_runtime(
    several: EmitRequest, bundle: Path, tmp_path: Path, node: str
) -> None:
    emitted = EMITTER.emit(several, tmp_path)
    for component in several.config.components:
        assert (tmp_path / "payload" / component.golden / "index.json").is_file()
    assert [(row.component, row.variant, row.build) for row in emitted.downloads] == [
        (component, variant, build)
        for component in ("detect", "read")
        for variant, build in (("webgpu", "jspi"), ("webgpu", "asyncify"), ("wasm", "wasm"))
    ]
    whole = sum_first_visit(emitted.downloads)
    paths = [file.path for file in whole.files]
    assert len(paths) == len(set(paths))
    assert [path for path in paths if path.endswith(".wasm")] == ["vendor/ort-wasm-simd-threaded.jspi.wasm"]
    assert [path for path in paths if path.startswith("payload/")] == [
        "payload/models/detect/webgpu/model.onnx",
        "payload/models/read/webgpu/model.onnx",
    ]
    assert (tmp_path / "loader" / "several.js").is_file()
    assert not (tmp_path / "loader" / "stream.js").exists()
    assert not (bundle / "loader" / "several.js").exists()
    code = f"import * as bundle from {str(tmp_path / 'node.js')!r}; console.log(JSON.stringify(await bundle.probe()));"
    assert list(evaluate(node, code)) == ["detect", "read"]


def test_types_are_distinct() -> None:
    assert name_types(["detect", "detect_inputs", "tensor", "detect2"]) == (
        "Detect",
        "DetectInputs_",
        "Tensor_",
        "Detect2",
    )
