"""A jar as its users have it: started, verified, altered, and used from Kotlin and Java as its README says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from bundler.emitters.contract import ProofRequest
from bundler.emitters.jvm.proving import prove_bundle
from bundler.model.events import ignore
from tests.support import models
from tests.support.altered_bundles import renew_digest
from tests.support.command_line import CommandLine
from tests.support.kotlin import compile_java, compile_sources, fetch_runtime, find_java, run_java
from tests.support.recurrent_models import make_gru

METADATA = {"classes": "\u4e00$x\n\0", "__proto__": "*/ \u2028", "": ""}


@pytest.fixture(scope="module")
def built(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Two models in one bundle, one of them with state: verified while it was built."""
    fetch_runtime(bundler.cache)
    folder = tmp_path_factory.mktemp("jar")
    model = models.cnn(batch=1)
    onnx.helper.set_model_props(model, METADATA)
    image = models.save(model, folder, "cnn.onnx")
    sound = models.save(make_gru(), folder, "gru.onnx")
    document = bundler.run(
        *("build", f"detect={image}", f"hear={sound}", "--bundle", "senses", "--state", "hear:h0=hn"),
        *("--target", "linux-x64", "--format", "jar", "--package-name", "com.acme.senses", "--version", "1.2.3"),
        *("--output", folder / "out", "--json"),
    )
    (bundle,) = document.expect(0).document["bundles"]
    return dict(bundle)


@pytest.fixture
def jar(built: dict[str, object]) -> Path:
    return Path(str(built["bundle"])) / "senses-1.2.3.jar"


def libraries(jar: Path) -> tuple[Path, ...]:
    return (jar, *sorted((jar.parent / "lib").glob("*.jar")))


def snippets(jar: Path, language: str) -> list[str]:
    """The blocks of the README in a language."""
    return re.findall(rf"```{language}\n(.*?)```", (jar.parent / "README.md").read_text("utf-8"), re.DOTALL)


def test_every_variant_is_executed(built: dict[str, object]) -> None:
    manifest = json.loads((Path(str(built["bundle"])) / "bundle.json").read_text("utf-8"))
    assert manifest["proof"]["level"] == "executed"


def test_it_starts_where_it_lies(jar: Path, tmp_path: Path) -> None:
    moved = tmp_path / "a folder with spaces & ä"
    shutil.copytree(jar.parent, moved)
    assert "variant cpu runs on CPUExecutionProvider" in run_java(("-jar", str(moved / jar.name), "info"))
    assert run_java(("-jar", str(moved / jar.name), "self-test")).count("synthetic samples are within tolerance") == 2
    assert "median" in run_java(("-jar", str(moved / jar.name), "bench", "--seconds", "0.1"))
    assert (
        "usage"
        in subprocess.run(
            (find_java(), "-jar", str(moved / jar.name)), capture_output=True, text=True, check=False
        ).stderr
    )


def test_the_runtime_is_unpacked_once_and_leaves_nothing_behind(jar: Path, tmp_path: Path) -> None:
    home, passing = tmp_path / "home", tmp_path / "tmp"
    passing.mkdir()
    environment = {**os.environ, "XDG_CACHE_HOME": str(home)}
    for _ in range(2):
        command = (find_java(), f"-Djava.io.tmpdir={passing}", "-jar", str(jar), "info")
        subprocess.run(command, env=environment, check=True, capture_output=True)
        assert not list(passing.iterdir())
        (natives,) = (home / "bundler-loader").glob("natives-*")
        (library,) = natives.glob("libonnxruntime.so")
        library.write_bytes(library.read_bytes()[:1000])  # another size: it is unpacked again


def test_the_readme_in_kotlin_runs_as_it_stands(jar: Path, bundler: CommandLine, tmp_path: Path) -> None:
    (source,) = (text for text in snippets(jar, "kotlin") if "fun main" in text)
    (tmp_path / "Example.kt").write_text(source, "utf-8")
    compile_sources(bundler.cache, (tmp_path / "Example.kt",), libraries(jar), tmp_path / "classes")
    path = os.pathsep.join(map(str, (tmp_path / "classes", *libraries(jar))))
    assert "float32[1, 5]" in run_java(("-cp", path, "ExampleKt"))


def test_the_readme_in_java_runs_as_it_stands(jar: Path, tmp_path: Path) -> None:
    (source,) = snippets(jar, "java")
    (tmp_path / "Example.java").write_text(source, "utf-8")
    compile_java(tmp_path / "Example.java", libraries(jar), tmp_path / "classes")
    path = os.pathsep.join(map(str, (tmp_path / "classes", *libraries(jar))))
    assert "float32[1, 5]" in run_java(("-cp", path, "Example"))


def test_the_readme_fills_masks_with_ones(bundler: CommandLine, tmp_path: Path) -> None:
    """By their name or by their use, of each type that is written in another way: Kotlin and Java compile it."""
    kinds = {"pixels": "UINT8", "mask": "UINT8", "flags": "INT64", "short_mask": "INT16", "half_mask": "FLOAT16"}
    inputs = [models.value(name, ["n", 4], TensorProto.DataType.Value(kind)) for name, kind in kinds.items()]
    nodes = [helper.make_node("Cast", ["flags"], ["truths"], to=TensorProto.BOOL)]
    nodes += [helper.make_node("Cast", [name], [f"{name}_f"], to=TensorProto.FLOAT) for name in (*kinds, "truths")]
    nodes += [helper.make_node("Sum", [f"{name}_f" for name in (*kinds, "truths")], ["sum"])]
    model = models.save(models.make_model(nodes, inputs, [models.value("sum", ["n", 4])]), tmp_path, "masked.onnx")
    built = bundler.build(model, *("-t", "linux-x64", "--format", "jar", "--no-prove", "--output", tmp_path / "out"))
    (jar,) = (path for path in Path(built["bundle"]).glob("*.jar") if "sources" not in path.name)
    (kotlin,) = (text for text in snippets(jar, "kotlin") if "fun main" in text)
    (java,) = snippets(jar, "java")
    for text in (kotlin, java):
        assert "…" not in text
    (tmp_path / "Example.kt").write_text(kotlin.replace("println(outputs.sum)", READ), "utf-8")
    (tmp_path / "Example.java").write_text(java, "utf-8")
    compile_sources(bundler.cache, (tmp_path / "Example.kt",), libraries(jar), tmp_path / "classes")
    compile_java(tmp_path / "Example.java", libraries(jar), tmp_path / "java")
    path = os.pathsep.join(map(str, (tmp_path / "classes", *libraries(jar))))
    assert "[6.0, 5.0, 5.0, 5.0]" in run_java(("-cp", path, "ExampleKt"))


def test_the_readme_of_a_model_of_texts_runs_as_it_stands(bundler: CommandLine, tmp_path: Path) -> None:
    """Text cannot be allocated before it is known: the section was empty."""
    inputs = [models.value("words", ["n", 3], TensorProto.STRING), models.value("counts", ["n"], TensorProto.INT64)]
    outputs = [models.value("same", ["n", 3], TensorProto.STRING), models.value("sums", ["n"], TensorProto.INT64)]
    nodes = [helper.make_node("Identity", ["words"], ["same"]), helper.make_node("Add", ["counts"] * 2, ["sums"])]
    model = models.save(models.make_model(nodes, inputs, outputs), tmp_path, "texts.onnx")
    built = bundler.build(model, *("-t", "linux-x64", "--format", "jar", "--no-prove", "--output", tmp_path / "out"))
    (jar,) = (path for path in Path(built["bundle"]).glob("*.jar") if "sources" not in path.name)
    (kotlin,) = (text for text in snippets(jar, "kotlin") if "fun main" in text)
    (java,) = snippets(jar, "java")
    (tmp_path / "Example.kt").write_text(kotlin, "utf-8")
    (tmp_path / "Example.java").write_text(java, "utf-8")
    compile_sources(bundler.cache, (tmp_path / "Example.kt",), libraries(jar), tmp_path / "classes")
    compile_java(tmp_path / "Example.java", libraries(jar), tmp_path / "java")
    for folder, main in (("classes", "ExampleKt"), ("java", "Example")):
        path = os.pathsep.join(map(str, (tmp_path / folder, *libraries(jar))))
        assert "str[1, 3]" in run_java(("-cp", path, main))


READ = "println(FloatArray(4) { outputs.sum.floats().get(it) }.toList())"

STREAM = """
import com.acme.senses.HearStreamInputs
import com.acme.senses.SensesBundle
import com.acme.senses.loader.Tensor

fun main() {
    SensesBundle.openBlocking().use { bundle ->
        bundle.hear.stream().use { stream ->
            val inputs = HearStreamInputs(Tensor.floats(%s))
            val answers = List(3) { stream.runBlocking(inputs).use { check(it["scores"] === it.scores) } }
            println("steps ${answers.size}, state ${stream.state.keys}")
            stream.reset()
        }
        println("metadata ${bundle.detect.metadata.map { (key, value) -> "$key=${value.map { it.code }}" }.sorted()}")
        println("of the other ${bundle.hear.metadata}")
    }
}
"""


def test_a_stream_is_typed(jar: Path, bundler: CommandLine, tmp_path: Path) -> None:
    with zipfile.ZipFile(jar.with_name("senses-1.2.3-sources.jar")) as archive:
        facade = archive.read("com/acme/senses/SensesBundle.kt").decode()
    shape = re.search(r"class HearStreamInputs\(\s*/\*\* `\w+`: `float32\[([\d, ]+)\]`", facade)
    assert shape is not None, facade
    (tmp_path / "Step.kt").write_text(STREAM % shape[1], "utf-8")
    compile_sources(bundler.cache, (tmp_path / "Step.kt",), libraries(jar), tmp_path / "classes")
    path = os.pathsep.join(map(str, (tmp_path / "classes", *libraries(jar))))
    said = run_java(("-cp", path, "StepKt"))
    assert "steps 3, state [h0]" in said
    told = sorted(f"{key}={[ord(char) for char in value]}" for key, value in METADATA.items())
    assert f"metadata [{', '.join(told)}]" in said
    assert "of the other {}" in said


def test_maven_takes_it_with_its_pom(jar: Path, tmp_path: Path) -> None:
    """As the README says, into a repository of the test's own."""
    maven = shutil.which("mvn")
    assert maven is not None
    (command,) = re.findall(r"^    mvn (install.*)$", (jar.parent / "README.md").read_text("utf-8"), re.MULTILINE)
    goal, *options = command.split()
    assert goal == "install:install-file"
    plugin = "org.apache.maven.plugins:maven-install-plugin:install-file"
    done = subprocess.run(
        (maven, "-q", "-B", plugin, *options, f"-DlocalRepositoryPath={tmp_path}"),
        cwd=jar.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    if "could not be resolved" in done.stdout or "No plugin found" in done.stdout:
        pytest.skip("Maven's install plugin is in no repository of this machine")
    assert done.returncode == 0, done.stdout
    place = tmp_path / "com/acme/senses/1.2.3"
    assert (place / "senses-1.2.3.jar").read_bytes() == jar.read_bytes()
    assert (place / "senses-1.2.3-sources.jar").is_file()


def test_verify_runs_it_again(jar: Path, bundler: CommandLine) -> None:
    answer = bundler.run("verify", jar.parent).expect(0)
    assert "Verified" in answer.out


LIAR = """package com.acme.senses;

public final class Main {
    public static void main(String[] arguments) throws java.io.IOException {
        try (java.io.InputStream report = Main.class.getResourceAsStream("/report.json")) {
            System.out.write(report.readAllBytes());
        }
        System.out.flush();
        Runtime.getRuntime().halt(CODE);
    }
}
"""


def replace_program(jar: Path, folder: Path, report: bytes, code: int) -> Path:
    """The bundle with a program that prints `report` and ends with `code`."""
    copy, source = folder / "copy", folder / "Main.java"
    shutil.copytree(jar.parent, copy)
    source.write_text(LIAR.replace("CODE", str(code)))
    compile_java(source, (), folder / "classes")
    with zipfile.ZipFile(jar) as before, zipfile.ZipFile(copy / jar.name, "w") as after:
        for entry in before.infolist():
            if entry.filename != "com/acme/senses/Main.class":
                after.writestr(entry, before.read(entry))
        after.write(folder / "classes" / "com" / "acme" / "senses" / "Main.class", "com/acme/senses/Main.class")
        after.writestr("report.json", report)
    return copy


def test_a_loader_that_says_more_than_it_did_is_not_believed(jar: Path, tmp_path: Path) -> None:
    honest = json.loads(run_java(("-jar", str(jar), "self-test", "--json")))
    detect, hear = honest["variants"]
    hasty, silent = {**detect, "samples": 1}, {**hear, "outputs": []}
    reports: dict[str, tuple[Any, int, str]] = {
        "honest": (honest, 0, ""),
        "hasty": ({"variants": [hasty, hear]}, 0, "it compared 1 of 8 recorded samples"),
        "silent": ({"variants": [silent, detect]}, 0, "it compared the outputs (none)"),
        "half": ({"variants": [hear]}, 0, "the bundle did not report it"),
        "crash": (honest, 139, "it exited with code 139"),
        "contradiction": (honest, 1, "exited with code 1"),
    }
    for name, (report, code, reason) in reports.items():
        (tmp_path / name).mkdir()
        copy = replace_program(jar, tmp_path / name, json.dumps(report).encode(), code)
        proofs = prove_bundle(ProofRequest(bundle=copy, cache_root=tmp_path / "cache", listener=ignore))
        assert all(proof.passed for proof in proofs) == (name == "honest"), name
        assert any(reason in proof.reason for proof in proofs), name


def test_an_altered_model_is_found_by_verify_and_by_the_loader(jar: Path, bundler: CommandLine, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(jar.parent, copy)
    altered = copy / jar.name
    data = bytearray(altered.read_bytes())
    with zipfile.ZipFile(altered) as archive:
        model = archive.read(next(name for name in archive.namelist() if name.endswith(".onnx")))
    data[data.index(model) + len(model) // 2] ^= 1
    altered.write_bytes(bytes(data))
    assert "other content" in bundler.run("verify", copy).expect(8).err
    done = subprocess.run((find_java(), "-jar", str(altered), "info"), capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "does not match its checksum" in done.stderr


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_jar_that_was_sealed_again_holds_each_file_once(jar: Path, bundler: CommandLine, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(jar.parent, copy)
    altered = copy / jar.name
    with zipfile.ZipFile(altered, "a") as archive:
        name = next(name for name in archive.namelist() if name.endswith("/runtime.json"))
        archive.writestr(name, archive.read(name))
    renew_digest(copy, altered)
    assert f"entry {name!r}: present twice" in bundler.run("verify", copy).expect(8).err


def test_a_pom_that_declares_entities_is_refused(jar: Path, bundler: CommandLine, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(jar.parent, copy)
    pom = copy / f"{jar.stem}.pom"
    pom.write_text(pom.read_text("utf-8").replace("<project", '<!DOCTYPE p [<!ENTITY x "y">]>\n<project', 1), "utf-8")
    renew_digest(copy, pom)
    assert "\n  the POM declares a document type (DOCTYPE)\n" in bundler.run("verify", copy).expect(8).err


def test_the_runtime_is_that_of_this_system_alone(jar: Path) -> None:
    (runtime,) = (jar.parent / "lib").glob("onnxruntime-*.jar")
    with zipfile.ZipFile(runtime) as archive:
        folders = {name.split("/")[3] for name in archive.namelist() if name.startswith("ai/onnxruntime/native/")}
    assert folders == {"linux-x64"}


def test_an_output_may_have_other_sizes_than_its_model_declares(bundler: CommandLine, tmp_path: Path) -> None:
    """Converters of tree models declare `int64[1]` for the label of each row; the runtime only warns."""
    model = models.save(models.labels(rows=1), tmp_path)
    command = ("build", model, "-t", "linux-x64", "--format", "jar", "--output", tmp_path / "out", "--json")
    (bundle,) = bundler.run(*command).expect(0).document["bundles"]
    manifest = json.loads((Path(bundle["bundle"]) / "bundle.json").read_text("utf-8"))
    assert manifest["proof"]["level"] == "executed"


def test_what_a_jar_cannot_hold_is_refused(bundler: CommandLine, tmp_path: Path) -> None:
    model = models.save(models.zipmap(), tmp_path)
    answer = bundler.run("build", model, "-t", "linux-x64", "--format", "jar", "--output", tmp_path / "out").expect(2)
    assert "cannot hold" in answer.err
    assert "--format files" in answer.err
    assert not list((tmp_path / "out").glob("*"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-t", "web-wasm", "--format", "jar"), "have no format 'jar'"),
        (("-t", "raspberry-pi-4", "--format", "jar", "--package-name", "x"), "cannot be the package"),
        (("-t", "linux-x64", "--format", "jar", "--version", "1/2"), "cannot be the version"),
        (("-t", "rtx-4090", "--format", "jar"), 'the runtime for Java has no "'),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_built(
    warm: CommandLine, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    model = models.save(models.mlp(), tmp_path)
    answer = warm.run("build", model, *arguments, "--output", tmp_path / "out")
    assert answer.code in (2, 4)
    assert says in answer.err
