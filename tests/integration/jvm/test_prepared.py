"""Inputs as people have them, in bundles whose models declare what becomes of them."""

from __future__ import annotations

import json
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from bundler.model.preprocessing import read_record
from bundler.stages.prepare_data.audio import load_audio
from bundler.stages.prepare_data.images import load_image
from tests.support import models
from tests.support.command_line import CommandLine
from tests.support.data_folders import pixels, write_wave
from tests.support.kotlin import (
    TESTS,
    compile_java,
    compile_sources,
    fetch_android,
    fetch_runtime,
    run_java,
    unpack_payload,
)
from tests.support.tokenizers import write_tokenizer

PICTURES = """
kind = "image"
resize = "pad"
filter = "bicubic"
background = [9, 8, 7]
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]
"""
RECORDINGS = """
kind = "audio"
sample_rate = 16000
length = 4000
normalise = "standard"
"""
PACKAGE = ("--package-name", "com.acme.sight")


def write_pictures(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for number in range(3):
        Image.fromarray(pixels(30 + number, 41, seed=number)).save(folder / f"{number}.png")
    (folder / "preprocessing.toml").write_text(PICTURES, "utf-8")
    return folder


def make_listener() -> onnx.ModelProto:
    """Half of each sample: waves[1, 4000] -> y."""
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4000]) for name in ("waves", "y")]
    half = numpy_helper.from_array(np.array([0.5], np.float32), "half")
    graph = helper.make_graph([helper.make_node("Mul", ["waves", "half"], ["y"])], "g", ports[:1], ports[1:], [half])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def write_recordings(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for number in range(3):
        values = np.random.default_rng(number).uniform(-1, 1, (5000, 2))
        write_wave(folder / f"{number}.wav", values, rate=22050)
    (folder / "preprocessing.toml").write_text(RECORDINGS, "utf-8")
    return folder


def make_reader() -> onnx.ModelProto:
    """The ids that count: input_ids[1, 8], attention_mask[1, 8] -> y."""
    ids, mask = (
        helper.make_tensor_value_info(name, TensorProto.INT64, [1, 8]) for name in ("input_ids", "attention_mask")
    )
    given = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8])
    nodes = [
        helper.make_node("Mul", ["input_ids", "attention_mask"], ["kept"]),
        helper.make_node("Cast", ["kept"], ["y"], to=TensorProto.FLOAT),
    ]
    graph = helper.make_graph(nodes, "g", [ids, mask], [given])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def write_sentences(folder: Path) -> Path:
    """Texts with a tokenizer as BERT has it."""
    folder.mkdir(parents=True)
    write_tokenizer(folder, ("red", "green", "blue", ","))
    path = folder / "tokenizer.json"
    data = json.loads(path.read_text("utf-8"))
    options = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}
    data |= {"normalizer": {"type": "BertNormalizer", **options}, "pre_tokenizer": {"type": "BertPreTokenizer"}}
    path.write_text(json.dumps(data), "utf-8")
    (folder / "preprocessing.toml").write_text('kind = "text"\n', "utf-8")
    (folder / "texts.txt").write_text("red green\nblue, red\ngreen green green\n", "utf-8")
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


LISTEN = """
import com.acme.sight.Sight
import java.io.File
import java.nio.ByteBuffer
import java.nio.ByteOrder

fun main(arguments: Array<String>) {
    Sight.openBlocking().use { model ->
        val data = ByteBuffer.wrap(File(arguments[0]).readBytes(), 44, 5000 * 4)
        val wave = data.order(ByteOrder.LITTLE_ENDIAN).asShortBuffer()
        val inputs = model.prepareAudio(wave, 44100, 2)
        File(arguments[1]).writeBytes(ByteArray(inputs.waves.size * 4) { inputs.waves.bytes().get(it) })
        val samples = ShortArray(wave.remaining()) { wave.get(it) }
        check(model.prepareAudio(samples, 44100, 2, inputs) === inputs)
        check(model.prepareAudio(FloatArray(4), 16000, 1, inputs) === inputs)
        kotlinx.coroutines.runBlocking { hearSight(model, samples) }
    }
}
"""


def test_the_readme_prepares_a_recording_as_python_does(bundler: CommandLine, tmp_path: Path) -> None:
    fetch_runtime(bundler.cache)
    model = models.save(make_listener(), tmp_path, "hear.onnx")
    built = bundler.build(
        *(model, "--samples", write_recordings(tmp_path / "data"), "--target", "linux-x64", "--format", "jar"),
        *(*PACKAGE, "--output", tmp_path / "out"),
    )
    (found,) = (path for path in Path(built["bundle"]).glob("*.jar") if "sources" not in path.name)
    readme = (found.parent / "README.md").read_text("utf-8")
    (snippet,) = (text for text in re.findall(r"```kotlin\n(.*?)```", readme, re.DOTALL) if "prepareAudio" in text)
    (tmp_path / "Listen.kt").write_text(LISTEN + snippet, "utf-8")
    compile_sources(bundler.cache, (tmp_path / "Listen.kt",), libraries(found), tmp_path / "classes")
    write_wave(tmp_path / "a.wav", np.random.default_rng(5).uniform(-1, 1, (5000, 2)), rate=44100)
    answer = run(found, tmp_path / "classes", "ListenKt", str(tmp_path / "a.wav"), str(tmp_path / "values"))
    assert "float32[1, 4000]" in answer
    unpack_payload(found.parent, tmp_path / "payload")
    config = json.loads((tmp_path / "payload/runtime.json").read_text("utf-8"))
    expected = load_audio(tmp_path / "a.wav", read_record(config["components"][0]["preprocessing"]))  # type: ignore[arg-type]
    np.testing.assert_allclose(np.fromfile(tmp_path / "values", np.float32), expected.ravel(), rtol=0, atol=1e-5)


READ = """
import com.acme.sight.Sight
import java.io.File

fun main(arguments: Array<String>) {
    Sight.openBlocking().use { model ->
        val file = File(arguments[0]).readBytes()
        val tokenizer = model.readTokenizer(file)
        val inputs = model.prepareText("Red, GREEN\u00e9", tokenizer)
        println(List(8) { inputs.inputIds.longs().get(it) })
        println(List(8) { inputs.attentionMask.longs().get(it) })
        check(model.prepareText("blue", tokenizer, inputs) === inputs)
        println(List(8) { inputs.inputIds.longs().get(it) })
        println(runCatching { model.readTokenizer(file.copyOf(9)) }.exceptionOrNull())
        kotlinx.coroutines.runBlocking { readSight(model, file, "red green") }
    }
}
"""


def test_the_readme_prepares_a_text_with_the_models_tokenizer(bundler: CommandLine, tmp_path: Path) -> None:
    fetch_runtime(bundler.cache)
    model = models.save(make_reader(), tmp_path, "read.onnx")
    built = bundler.build(
        *(model, "--samples", write_sentences(tmp_path / "data"), "--target", "linux-x64", "--format", "jar"),
        *(*PACKAGE, "--output", tmp_path / "out"),
    )
    (found,) = (path for path in Path(built["bundle"]).glob("*.jar") if "sources" not in path.name)
    readme = (found.parent / "README.md").read_text("utf-8")
    (snippet,) = (text for text in re.findall(r"```kotlin\n(.*?)```", readme, re.DOTALL) if "prepareText" in text)
    (tmp_path / "Read.kt").write_text(READ + snippet, "utf-8")
    compile_sources(bundler.cache, (tmp_path / "Read.kt",), libraries(found), tmp_path / "classes")
    answer = run(found, tmp_path / "classes", "ReadKt", str(tmp_path / "data/tokenizer.json")).splitlines()
    tokens = json.loads((tmp_path / "data/tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    first = [tokens[name] for name in ("[CLS]", "red", ",", "green", "##e", "[SEP]", "[PAD]", "[PAD]")]
    assert answer[0] == str(first)
    assert answer[1] == str([1] * 6 + [0] * 2)
    assert answer[2] == str([tokens[name] for name in ("[CLS]", "blue", "[SEP]", *["[PAD]"] * 5)])
    assert "the tokenizer is not the one that the model was checked with" in answer[3]
    assert "float32[1, 8]" in answer[-1]


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
    hear = models.save(make_listener(), tmp_path, "hear.onnx")
    read = models.save(make_reader(), tmp_path, "read.onnx")
    write_pictures(tmp_path / "samples/look")
    write_recordings(tmp_path / "samples/hear")
    write_sentences(tmp_path / "samples/read")
    built = bundler.build(
        *(f"look={model}", f"hear={hear}", f"read={read}", "--bundle", "sight", "--samples", tmp_path / "samples"),
        *("--target", "android-arm64", "--format", "gradle", *PACKAGE, "--output", tmp_path / "out"),
    )
    module = Path(built["bundle"])
    proofs = json.loads((module / "bundle.json").read_text("utf-8"))["proof"]["variants"]
    for name, type_ in (("look", "Look"), ("hear", "Hear"), ("read", "Read")):
        (proof,) = (proof for proof in proofs if (proof["component"], proof["variant"]) == (name, "cpu"))
        assert proof["reason"].endswith(f"; its class {type_} gave the same outputs")
    readme = (module / "README.md").read_text("utf-8")
    assert "prepareImage(image, rotation)" in readme
    snippets = [text for text in re.findall(r"```kotlin\n(.*?)```", readme, re.DOTALL) if "suspend fun" in text]
    assert len(snippets) == 4
    for number, text in enumerate(snippets):
        (tmp_path / f"Readme{number}.kt").write_text(text, "utf-8")
    (tmp_path / "Camera.kt").write_text(CAMERA, "utf-8")
    extra = [*tmp_path.glob("*.kt"), *(TESTS / "stubs").glob("*.kt")]
    libraries = (*fetch_runtime(bundler.cache), fetch_android(bundler.cache))
    compile_sources(bundler.cache, [*sorted(module.rglob("*.kt")), *extra], libraries, tmp_path / "classes")
    (facade,) = module.rglob("SightBundle.kt")
    assert facade.read_text("utf-8").count("private val preparation") == 3
