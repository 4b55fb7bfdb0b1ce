"""The same package in Node.js: its variant for the CPU."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.javascript import find_node, run

GOLDEN = Path("node_modules/model/payload/golden")


def node(code: str, folder: Path) -> Any:
    """What `code` prints as JSON, in a program of its own that ends by itself."""
    return json.loads(run((find_node(), "--input-type=module", "-e", code), folder))


ATTEMPT = """
  import {{ load, BundleError }} from "model";
  const attempt = async () => {{ {body} }};
  const explain = (error) => ({{ name: error.name, message: error.message, hint: error.hint,
    typed: error instanceof BundleError }});
  console.log(JSON.stringify(await attempt().catch(explain)));
"""


@pytest.mark.quick
def test_package_gives_the_golden_outputs(app: Path) -> None:
    found = node(
        """
        import { readFileSync } from "node:fs";
        import { load } from "model";
        const bytes = readFileSync("node_modules/model/payload/golden/000/in-0.bin");
        const model = await load();
        const image = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
        const { scores } = await model.run({ image });
        const test = await model.selfTest();
        console.log(JSON.stringify({ test, report: model.report, data: [...scores.data], dims: scores.dims }));
        await model.dispose();
        """,
        app,
    )
    reference = np.frombuffer((app / GOLDEN / "000/out-0.bin").read_bytes(), np.float32)
    np.testing.assert_allclose(found["data"], reference, atol=1e-6)
    assert found["dims"] == [1, 5]
    assert found["test"]["passed"], found["test"]
    assert (found["report"]["variant"], found["report"]["threads"]) == ("wasm", 1)


def test_wrong_inputs_are_named(app: Path) -> None:
    found = node(ATTEMPT.format(body="return (await load()).run({ picture: new Float32Array(768) });"), app)
    assert (found["name"], found["typed"]) == ("InputError", True)
    assert "image" in found["message"] + found["hint"]


@pytest.mark.parametrize(
    "path",
    ["payload/models/wasm/model.onnx", "vendor/ort-wasm-simd-threaded.wasm", "vendor/ort.wasm.bundle.min.mjs.txt"],
)
def test_altered_and_missing_files_are_refused(app: Path, tmp_path: Path, path: str) -> None:
    copy = tmp_path / "app"
    shutil.copytree(app, copy)
    file = copy / "node_modules" / "model" / path
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    code = ATTEMPT.format(body="return (await load()).report;")
    found = node(code, copy)
    assert (found["name"], found["typed"]) == ("IntegrityError", True)
    assert path.removesuffix(".txt") in found["message"]
    file.unlink()
    found = node(code, copy)
    assert (found["name"], found["typed"]) == ("DownloadError", True)
    assert "install" in found["hint"]


def test_threads_are_said_to_be_one(app: Path) -> None:
    found = node(ATTEMPT.format(body="return (await load({ threads: 4 })).report;"), app)
    assert found["threads"] == 1
    assert any("Node.js" in note for note in found["notes"])


def test_npm_publishes_no_model_by_mistake(app: Path, tmp_path: Path) -> None:
    """Whoever is logged in; here, to a registry that is not there."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not on the PATH: install Node.js 20 or newer with npm")
    (tmp_path / "npmrc").write_text("//127.0.0.1:9/:_authToken=none\n")
    command = (npm, "publish", "--registry", "http://127.0.0.1:9", "--userconfig", str(tmp_path / "npmrc"))
    done = subprocess.run(
        command, cwd=app / "node_modules" / "model", capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode != 0
    assert "EPRIVATE" in done.stderr
