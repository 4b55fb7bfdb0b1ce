"""Inputs as people have them, in bundles whose models declare what becomes of them."""

from __future__ import annotations

import json
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bundler.model.preprocessing import read_record
from bundler.stages.prepare_data.images import load_image
from tests.support import models
from tests.support.command_line import CommandLine
from tests.support.data_folders import pixels
from tests.support.kotlin import (
    TESTS,
    compile_java,
    compile_sources,
    fetch_android,
    fetch_runtime,
    run_java,
    unpack_payload,
)

PICTURES = """
kind = "image"
resize = "pad"
filter = "bicubic"
background = [9, 8, 7]
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]
"""
PACKAGE = ("--package-name", "com.acme.sight")


def write_pictures(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for number in range(3):
        Image.fromarray(pixels(30 + number, 41, seed=number)).save(folder / f"{number}.png")
    (folder / "preprocessing.toml").write_text(PICTURES, "utf-8")
    return folder


@pytest.fixture(scope="module")
def jar(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model for pictures, with a declared preprocessing."""
    fetch_runtime(bundler.cache)
    folder = tmp_path_factory.mktemp("prepared")
    model = models.save(models.cnn(), folder, "cnn.onnx")
    built = bundler.build(
        *(model, "--samples", write_pictures(folder / "pictures"), "--target", "linux-x64", "--format", "jar"),
        *(*PACKAGE, "--output", folder / "out"),
    )
    (found,) = (path for path in Path(built["bundle"]).glob("*.jar") if "sources" not in path.name)
    return found


def libraries(jar: Path) -> tuple[Path, ...]:
    return (jar, *sorted((jar.parent / "lib").glob("*.jar")))


def run(jar: Path, folder: Path, name: str, *arguments: str) -> str:
    path = os.pathsep.join(map(str, (folder, *libraries(jar))))
    return run_java(("-cp", path, name, *arguments))


KOTLIN = """
import com.acme.sight.Sight
import java.io.File
import javax.imageio.ImageIO

fun main(arguments: Array<String>) {
    Sight.openBlocking().use { model ->
        val picture = ImageIO.read(File(arguments[0]))
        val inputs = model.prepareImage(picture)
        File(arguments[1]).writeBytes(ByteArray(inputs.image.size * 4) { inputs.image.bytes().get(it) })
        val pixels = picture.getRGB(0, 0, picture.width, picture.height, null, 0, picture.width)
        check(model.prepareImage(pixels, picture.width, picture.height, inputs) === inputs)
        kotlinx.coroutines.runBlocking { showSight(model, picture) }
    }
}
"""


def test_the_readme_prepares_a_picture_as_python_does(jar: Path, bundler: CommandLine, tmp_path: Path) -> None:
    readme = (jar.parent / "README.md").read_text("utf-8")
    assert "`prepareImage` does the same" in readme
    (snippet,) = (text for text in re.findall(r"```kotlin\n(.*?)```", readme, re.DOTALL) if "prepareImage" in text)
    (tmp_path / "Use.kt").write_text(KOTLIN + snippet, "utf-8")
    compile_sources(bundler.cache, (tmp_path / "Use.kt",), libraries(jar), tmp_path / "classes")
    Image.fromarray(pixels(50, 23, 4, seed=9)).save(tmp_path / "a.png")
    answer = run(jar, tmp_path / "classes", "UseKt", str(tmp_path / "a.png"), str(tmp_path / "values"))
    assert "float32[1, 5]" in answer
    unpack_payload(jar.parent, tmp_path / "payload")
    config = json.loads((tmp_path / "payload/runtime.json").read_text("utf-8"))
    record = read_record(config["components"][0]["preprocessing"])
    expected = load_image(tmp_path / "a.png", record)  # type: ignore[arg-type]
    assert np.array_equal(np.fromfile(tmp_path / "values", np.float32), expected.ravel())


JAVA = """
import com.acme.sight.Sight;
import com.acme.sight.SightInputs;
import com.acme.sight.SightOutputs;

public class Use {
    public static void main(String[] arguments) {
        try (Sight model = Sight.openBlocking();
             SightInputs inputs = model.prepareImage(new int[12], 4, 3);
             SightOutputs outputs = model.runBlocking(inputs)) {
            System.out.println(model.prepareImage(java.nio.IntBuffer.wrap(new int[4]), 2, 2, inputs) == inputs);
            System.out.println(outputs.getScores());
        }
    }
}
"""


def test_it_is_there_for_java(jar: Path, tmp_path: Path) -> None:
    (tmp_path / "Use.java").write_text(JAVA, "utf-8")
    compile_java(tmp_path / "Use.java", libraries(jar), tmp_path / "classes")
    assert "true\nfloat32[1, 5]" in run(jar, tmp_path / "classes", "Use")


def test_it_brings_the_sources_of_its_preparation(jar: Path) -> None:
    (sources,) = jar.parent.glob("*-sources.jar")
    with zipfile.ZipFile(sources) as opened:
        names = {Path(name).name for name in opened.namelist()}
    assert {"ImagePreparation.kt", "BufferedPixels.kt", "Constants.kt"} <= names


CAMERA = """
import android.media.Image
import com.acme.sight.SightBundle

fun take(bundle: SightBundle, image: Image) = bundle.look.prepareImage(image, 90)
"""


def test_a_module_for_android_takes_bitmaps_and_camera_images(bundler: CommandLine, tmp_path: Path) -> None:
    model = models.save(models.cnn(), tmp_path, "cnn.onnx")
    think = models.save(models.mlp(), tmp_path, "mlp.onnx")
    write_pictures(tmp_path / "samples/look")
    (tmp_path / "samples/think").mkdir()
    np.savez(tmp_path / "samples/think/a.npz", x=np.random.default_rng(0).normal(size=(1, 8)).astype(np.float32))
    built = bundler.build(
        *(f"look={model}", f"think={think}", "--bundle", "sight", "--samples", tmp_path / "samples"),
        *("--target", "android-arm64", "--format", "gradle", "--no-prove", *PACKAGE, "--output", tmp_path / "out"),
    )
    module = Path(built["bundle"])
    readme = (module / "README.md").read_text("utf-8")
    assert "prepareImage(image, rotation)" in readme
    snippets = [text for text in re.findall(r"```kotlin\n(.*?)```", readme, re.DOTALL) if "suspend fun" in text]
    assert len(snippets) == 2
    for number, text in enumerate(snippets):
        (tmp_path / f"Readme{number}.kt").write_text(text, "utf-8")
    (tmp_path / "Camera.kt").write_text(CAMERA, "utf-8")
    extra = [*tmp_path.glob("*.kt"), *(TESTS / "stubs").glob("*.kt")]
    libraries = (*fetch_runtime(bundler.cache), fetch_android(bundler.cache))
    compile_sources(bundler.cache, [*sorted(module.rglob("*.kt")), *extra], libraries, tmp_path / "classes")
    (facade,) = module.rglob("SightBundle.kt")
    assert facade.read_text("utf-8").count("private val images") == 1
