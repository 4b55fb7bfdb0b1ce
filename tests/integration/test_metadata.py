"""What a model says in its metadata reaches the application, whatever became of the model's file."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import helper

from bundler.emitters.payload import MAX_SHOWN_KEYS
from tests.integration.python.packages import imported, write_package
from tests.support import models
from tests.support.bundles import combine_requests, make_request
from tests.support.command_line import HERE, CommandLine
from tests.support.real_models import EXAMPLES, run_python

HOSTILE = {
    "classes": "cat\ndog",
    "": "\0\x1b[31m\u2028\u202e",
    "__proto__": "</script><b>`${1}`",
    "# heading\n\n<img src=x>": "{{ 1 }} *x*",
    "\x1b[2J": "\u4e00\U0001f600",
    **{f"key{index:02}": str(index) for index in range(MAX_SHOWN_KEYS)},
}
FETCH = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from package_files import PackageFile, run_fetch
source = "rapidocr/models/PP-OCRv6_rec_small.onnx"
sys.exit(run_fetch("rapidocr==3.10.0", [PackageFile(source=source, destination=Path(sys.argv[2]), sha256=sys.argv[3])]))
"""
TARGET = "linux-x64"
RECOGNISER = "6f327246b50388f3c176ae304bd95767ea6dc0c9ae92153ef8cbe210b3c14884"
READ = """
import { load } from "./node.js";
const model = await load();
console.log(JSON.stringify(Object.entries(model.metadata)));
console.log(Object.isFrozen(model.metadata));
await model.dispose();
process.exit(0);
"""


def with_metadata(model: onnx.ModelProto, metadata: dict[str, str]) -> onnx.ModelProto:
    helper.set_model_props(model, metadata)
    return model


def read_in_python(bundle: Path, module: str) -> dict[str, str]:
    code = f"import json, {module}; print(json.dumps(dict({module}.Model().metadata)))"
    done = subprocess.run([sys.executable, "-B", "-c", code], cwd=bundle, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.quick
def test_each_component_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    requests = {
        "one": make_request(with_metadata(models.mlp(), HOSTILE), tmp_path / "one"),
        "two": make_request(models.mlp(), tmp_path / "two"),
    }
    package = write_package(combine_requests(requests, name="pair"), tmp_path)
    with imported(package) as module, module.Bundle.open() as bundle:
        assert (dict(bundle.one.metadata), dict(bundle.two.metadata)) == (HOSTILE, {})
        with pytest.raises(TypeError):
            bundle.one.metadata["classes"] = "another"


@pytest.mark.parametrize(
    "settings",
    [(), ("optimization.format=ort",), ("precision.method=dynamic-int8",)],
    ids=["optimised", "ort", "int8"],
)
def test_it_does_not_depend_on_what_became_of_the_file(
    bundler: CommandLine, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    model = models.save(with_metadata(models.mlp(), HOSTILE), tmp_path, "mlp.onnx")
    options = [part for setting in settings for part in ("--set", setting)]
    built = bundler.build(
        model, "--target", TARGET, "--python", HERE, "--no-prove", "--output", tmp_path / "out", *options
    )
    bundle = Path(built["bundle"])
    assert read_in_python(bundle, "mlp") == HOSTILE
    readme = (bundle / "README.md").read_text("utf-8")
    assert "\x1b" not in readme
    assert "\n# heading" not in readme
    assert "\\<img src=x\\>" in readme  # escaped, as Markdown has it
    assert "and 5 more" in readme


def test_in_javascript(bundler: CommandLine, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("the loader of web bundles is not run: there is no Node.js on the PATH")
    model = models.save(with_metadata(models.mlp(), HOSTILE), tmp_path, "mlp.onnx")
    done = bundler.run("build", model, "--target", "web-wasm", "--no-prove", "--output", tmp_path / "out", "--json")
    bundle = Path(done.expect(0).document["bundles"][0]["bundle"])
    (bundle / "read.mjs").write_text(READ, "utf-8")
    said = subprocess.run([node, "read.mjs"], cwd=bundle, capture_output=True, text=True, check=True).stdout
    entries, frozen, _ = said.split("\n")
    assert (dict(json.loads(entries)), frozen) == (HOSTILE, "true")


def test_files_and_packages_carry_it(bundler: CommandLine, tmp_path: Path) -> None:
    model = models.save(with_metadata(models.mlp(), HOSTILE), tmp_path, "mlp.onnx")
    built = bundler.build(
        model, "--target", TARGET, "--format", "ortpackage", "--no-prove", "--output", tmp_path / "out"
    )
    config = json.loads((Path(built["bundle"]) / "runtime.json").read_text("utf-8"))
    assert config["components"][0]["metadata"] == HOSTILE
    assert "the original model's metadata: use runtime.json" in (Path(built["bundle"]) / "README.md").read_text("utf-8")


def test_the_terminal_shows_keys_as_text(bundler: CommandLine, tmp_path: Path) -> None:
    model = models.save(with_metadata(models.mlp(), HOSTILE), tmp_path, "mlp.onnx")
    said = bundler.run("inspect", model).expect(0).out
    (line,) = (line for line in said.splitlines() if line.startswith("metadata "))
    assert "\x1b" not in said
    assert line.endswith(" and 13 more")


def test_a_recogniser_keeps_its_alphabet(bundler: CommandLine, shared: Path, tmp_path: Path) -> None:
    """PP-OCRv6's recogniser, as its package has it: verified, and its application finds the alphabet."""
    model = shared / "PP-OCRv6_rec_small.onnx"
    (tmp_path / "fetch.py").write_text(FETCH, "utf-8")
    run_python(Path(sys.executable), [tmp_path / "fetch.py", EXAMPLES, model, RECOGNISER])
    built = bundler.build(model, "--target", TARGET, "--python", HERE, "--output", tmp_path / "out")
    expected = {entry.key: entry.value for entry in onnx.load(model).metadata_props}
    assert len(expected["character"].splitlines()) > 18_000
    assert read_in_python(Path(built["bundle"]), "pp_ocrv6_rec_small") == expected
