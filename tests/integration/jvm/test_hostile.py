"""Names that break out of a string, a comment or a file, in a bundle that compiles all the same."""

from __future__ import annotations

import zipfile
from pathlib import Path
from xml.etree import ElementTree as ET

import onnx
import pytest
from onnx import TensorProto, helper

from tests.support import models
from tests.support.command_line import CommandLine
from tests.support.kotlin import TESTS, compile_sources, fetch_android, fetch_runtime, run_java

NAMES = (
    *("class", "fun", "val", "int", "this", "Object", "close", "toArray", "values", "equals", "R", "Tensor", "it"),
    *('"', '""" + exit() + """', "${System.exit(1)}", "$x", "\\", "\\u0022", "\\u002a/", "*/ fun f() {} /*", "/*", "`"),
    *(
        "]]>",
        "<a b='c'>",
        "&amp;",
        "@Deprecated",
        "[LoadReport]",
        "a b",
        "a\nb",
        "a\tb",
        "\x7f",
        "\uffff",
        "日本",
        "ß",
        "ñ",
    ),
    *("x", "X", "x_", "x-", "1", "1x", "_", "..", "../../etc/passwd", "\u202e", "\u2028", "é" * 40, "a" * 300),
)


def make_hostile() -> onnx.ModelProto:
    """An input and an output of each name; the sizes have such names, too."""
    nodes, inputs, outputs = [], [], []
    for position, name in enumerate(NAMES):
        inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [NAMES[position - 1], 2]))
        outputs.append(helper.make_tensor_value_info(f"{name}:0", TensorProto.FLOAT, [NAMES[position - 1], 2]))
        nodes.append(helper.make_node("Neg", [name], [f"{name}:0"]))
    graph = helper.make_graph(nodes, "hostile", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    return models.save(make_hostile(), folder, 'class $x "quoted" */.onnx'.replace("/", "∕"))  # noqa: RUF001


def test_a_jar_of_any_names_compiles_and_runs(bundler: CommandLine, model: Path, tmp_path: Path) -> None:
    fetch_runtime(bundler.cache)
    built = bundler.build(model, "--target", "linux-x64", "--format", "jar", "--output", tmp_path / "out")
    (jar,) = (path for path in Path(built["bundle"]).glob("*.jar") if "sources" not in path.name)
    tested = run_java(("-jar", str(jar), "self-test"))
    assert tested.startswith("class-x-quoted, variant cpu: ")
    assert "synthetic samples are within tolerance" in tested
    (pom,) = Path(built["bundle"]).glob("*.pom")
    ET.parse(pom)  # noqa: S314 (written by bundler)
    with zipfile.ZipFile(jar) as archive:
        assert not [name for name in archive.namelist() if ".." in name or name.startswith("/")]


def test_a_module_of_any_names_compiles(bundler: CommandLine, model: Path, tmp_path: Path) -> None:
    libraries = (*fetch_runtime(bundler.cache), fetch_android(bundler.cache))
    built = bundler.build(
        *(model, "--target", "android-arm64", "--format", "gradle", "--no-prove", "--output", tmp_path / "out")
    )
    sources = sorted(Path(built["bundle"]).rglob("*.kt"))
    compile_sources(bundler.cache, [*sources, *sorted((TESTS / "stubs").glob("*.kt"))], libraries, tmp_path / "classes")
    for manifest in Path(built["bundle"]).rglob("AndroidManifest.xml"):
        ET.parse(manifest)  # noqa: S314 (written by bundler)


@pytest.mark.parametrize("name", ["a\0b", "😀"])
def test_a_name_that_java_cannot_pass_is_refused(warm: CommandLine, tmp_path: Path, name: str) -> None:
    """The runtime would know no input of the name that it is given."""
    path = models.save(models.identity(name), tmp_path)
    for target, package_format in (("linux-x64", "jar"), ("android-arm64", "gradle")):
        arguments = ("-t", target, "--format", package_format, "--output", tmp_path / "out")
        assert "cannot pass the name" in warm.run("build", path, *arguments).expect(2).err
