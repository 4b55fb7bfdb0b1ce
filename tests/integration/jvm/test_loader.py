"""The loader in Kotlin, tested in Kotlin by JUnit, on real bundles."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.support import models
from tests.support.command_line import ROOT, CommandLine
from tests.support.decoder_models import make_decoder
from tests.support.kotlin import (
    TESTS,
    VERSION,
    compile_loader,
    compile_sources,
    fetch_junit,
    fetch_runtime,
    run_java,
    unpack_payload,
    write_token_vectors,
)
from tests.support.prepared_vectors import write_camera, write_images, write_sounds
from tests.support.recurrent_models import make_gru

CLASSES = (
    *("LoaderTest", "IntegrityTest", "StreamTest", "FiguresTest", "PrewarmTest"),
    *("ImagePreparationTest", "AudioPreparationTest", "TextPreparationTest"),
    *("CameraTest", "ConstantsTest", "EncodingTest"),
)


def make_slow(layers: int = 400, width: int = 1024) -> onnx.ModelProto:
    """Many matrices one after the other: the runtime can stop between any two."""
    weights = numpy_helper.from_array((np.eye(width) * 0.5).astype(np.float32), "w")
    nodes = [
        helper.make_node("MatMul", [f"x{at}" if at else "x", "w"], [f"x{at + 1}" if at + 1 < layers else "y"])
        for at in range(layers)
    ]
    ports = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["rows", width]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "slow", ports[:1], ports[1:], [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


@pytest.fixture(scope="module")
def outcome(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What JUnit reported of all tests."""
    runtime, junit = fetch_runtime(bundler.cache), fetch_junit(bundler.cache)
    folder = tmp_path_factory.mktemp("kotlin")
    (folder / "images").mkdir()
    write_images(folder / "images")
    write_camera(folder / "images")
    write_sounds(folder / "images")
    write_token_vectors(bundler.cache, folder / "images")
    properties = {**build_bundles(bundler, folder), "images": folder / "images", "texts": folder / "images"}
    loader = compile_loader(bundler.cache, folder / "loader")
    tests = folder / "tests"
    compile_sources(bundler.cache, sorted(TESTS.glob("*.kt")), (*runtime, junit), tests, friends=(loader,))
    path = os.pathsep.join(map(str, (tests, loader, *runtime)))
    command = (
        "-jar",
        str(junit),
        "execute",
        "--class-path",
        path,
        "--scan-class-path",
        str(tests),
        "--details",
        "tree",
    )
    return run_java((*command, "--disable-ansi-colors", "--disable-banner"), properties=properties, codes=(0, 1))


def build_bundles(bundler: CommandLine, folder: Path) -> dict[str, object]:
    """The bundles that the tests open, each payload in a folder of its name."""
    here = ("--target", "linux-x64", "--no-prove", "--output", folder / "built")
    files = ("--format", "files", "--set", "bundle.ecosystem=jvm", "--set", f"runtime.version={VERSION}")
    (folder / "bundles").mkdir()
    for name, model, options in (
        ("slow", make_slow(), ()),
        ("stream", make_gru(), ("--state", "h0=hn")),
        ("decoder", make_decoder(), ("--state", "past_k=present_k,grows=2", "--state", "past_v=present_v,grows=2")),
    ):
        path = models.save(model, folder / "models", f"{name}.onnx")
        built = bundler.build(path, *here, *files, *options)
        (folder / "bundles" / name).symlink_to(Path(built["bundle"]), target_is_directory=True)
    cnn = bundler.build(models.save(models.cnn(), folder / "models", "cnn.onnx"), *here, "--format", "jar")
    whole = unpack_payload(Path(cnn["bundle"]), folder / "bundles" / "cnn")
    fallback = bundler.build(
        models.save(models.cnn(), folder / "models", "fallback.onnx"),
        *("--target", "android-x64", "--no-prove", "--output", folder / "built"),
    )
    (payload,) = Path(fallback["bundle"]).glob("bundle/src/main/assets/*/payload")
    (folder / "bundles" / "fallback").symlink_to(payload, target_is_directory=True)
    big = models.big_external(folder / "models" / "big", megabytes=4)
    external = bundler.build(big, *here, "--format", "jar", "--name", "external")
    jar, prefix = unpack_payload(Path(external["bundle"]), folder / "bundles" / "external")
    return {
        "bundles": folder / "bundles",
        "jar": whole[0],
        "prefix": whole[1],
        "external.jar": jar,
        "external.prefix": prefix,
        "vectors": ROOT / "tests" / "vectors" / "figures.json",
    }


@pytest.mark.parametrize("name", CLASSES)
def test_every_test_of_the_class_passes(outcome: str, name: str) -> None:
    found = re.search(rf"{name}(?s:.*?)(?=\n[^\n]*Test \[|\nTest run finished)", outcome)
    assert found is not None, outcome
    assert re.search(r"\[X\]|✘", found[0]) is None, found[0]


def test_no_test_was_left_out(outcome: str) -> None:
    assert int(re.search(r"(\d+) tests successful", outcome)[1]) > 60  # type: ignore[index]
    assert "0 tests failed" in outcome, outcome
    assert "0 tests skipped" in outcome, outcome
