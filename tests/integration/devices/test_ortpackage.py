"""Model packages of ONNX Runtime, as a user builds them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support import models
from tests.support.command_line import CommandLine
from tests.support.package_reader import open_package


@pytest.fixture(scope="module")
def package(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    model = models.save(models.cnn(), folder, "cnn.onnx")
    bundler.build(model, "--target", "linux-x64", "--format", "ortpackage", "--set", "optimization.format=onnx",
                  "--output", folder / "out")  # fmt: skip
    return folder / "out" / "cnn-linux-x64"


@pytest.mark.quick
def test_the_runtime_itself_opens_what_was_built(package: Path) -> None:
    opened = open_package(package)
    assert (opened.selected, opened.inputs) == ("cpu", 1)
    assert opened.folder.samefile(package / "models" / "cpu")


def test_it_is_a_bundle_like_any_other(bundler: CommandLine, package: Path) -> None:
    answer = bundler.run("verify", package, "--json").expect(0).document
    assert answer["proof"] == "stand-in"
    manifest = json.loads((package / "bundle.json").read_text("utf-8"))
    assert manifest["format"] == "ortpackage"
    assert "manifest.json" in {record["path"] for record in manifest["files"]}


def test_what_is_in_it_can_be_built_again(bundler: CommandLine, package: Path, tmp_path: Path) -> None:
    named = shutil.copytree(package, tmp_path / "tiny.ortpackage")
    bundler.build(named, "--target", "linux-arm64", "--format", "files", "--output", tmp_path)
    answer = bundler.run("verify", tmp_path / "tiny-linux-arm64", "--json").expect(0).document
    assert answer["proof"] == "stand-in"


def test_several_components_are_written_and_each_can_be_built_again(bundler: CommandLine, tmp_path: Path) -> None:
    named = [
        f"{name}={models.save(model, tmp_path / 'in', f'{name}.onnx')}"
        for name, model in (("detect", models.cnn()), ("recognise", models.mlp()))
    ]
    bundler.run("build", *named, "--bundle", "ocr", "--target", "linux-x64", "--format", "ortpackage",
                "--set", "optimization.format=onnx", "--output", tmp_path / "out").expect(0)  # fmt: skip
    package = shutil.copytree(tmp_path / "out" / "ocr-linux-x64", tmp_path / "ocr.ortpackage")
    opened = open_package(package, component="recognise")
    assert opened.variants == {"detect": {"cpu": "CPUExecutionProvider"}, "recognise": {"cpu": "CPUExecutionProvider"}}
    assert opened.folder.samefile(package / "models" / "recognise" / "cpu")
    again = [f"{name}={package}?component={name}" for name in ("detect", "recognise")]
    bundler.run("build", *again, "--bundle", "ocr", "--target", "linux-arm64", "--format", "files",
                "--output", tmp_path).expect(0)  # fmt: skip
    answer = bundler.run("verify", tmp_path / "ocr-linux-arm64", "--json").expect(0).document
    assert answer["proof"] == "stand-in"
    arguments = ("--target", "linux-arm64", "--format", "files", "--output", tmp_path / "all")
    bundler.run("build", package, *arguments).expect(0)
    manifest = json.loads((tmp_path / "all" / "ocr-linux-arm64" / "bundle.json").read_text("utf-8"))
    assert [component["name"] for component in manifest["components"]] == ["detect", "recognise"]
    bundler.run("build", f"{package}?component=recognise", *arguments, "--name", "reader").expect(0)
    manifest = json.loads((tmp_path / "all" / "reader-linux-arm64" / "bundle.json").read_text("utf-8"))
    assert [component["name"] for component in manifest["components"]] == ["model"]


def test_a_package_of_compiled_models_alone_is_no_input(bundler: CommandLine, package: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(package, tmp_path / "phone.ortpackage")
    manifest = json.loads((copy / "manifest.json").read_text("ascii"))
    manifest["components"]["model"]["variants"]["cpu"]["compatibility_string"] = "v2"
    (copy / "manifest.json").write_text(json.dumps(manifest))
    reported = bundler.run("build", copy, "--target", "linux-arm64", "--format", "files", "--output", tmp_path).expect(
        3
    )
    assert "the model package phone holds no model in plain ONNX" in reported.err
    assert "variant 'cpu': it was compiled for CPUExecutionProvider" in reported.err


def test_browsers_get_none(bundler: CommandLine, tmp_path: Path) -> None:
    model = models.save(models.cnn(), tmp_path / "in", "cnn.onnx")
    reported = bundler.run(
        "build", model, "--target", "web-wasm", "--format", "ortpackage", "--output", tmp_path / "out"
    )
    assert "the runtime's JavaScript has no call for it" in reported.expect(2).err
    assert "docs/ortpackage.md" in reported.err
    assert not list((tmp_path / "out").glob("cnn*"))
