"""An archive for Android as a mobile team has it: resolved by Maven, the same bytes twice, and its own classes run."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bundler.emitters.jvm.compiling import Compilation, compile_kotlin
from bundler.environments.registry import Environments
from bundler.model.events import SILENT
from bundler.toolchains.java import MAVEN
from bundler.toolchains.registry import find_toolchain
from tests.support import models
from tests.support.altered_bundles import renew_digest, replace_entries
from tests.support.command_line import CommandLine, digest_folder
from tests.support.documents import read_document
from tests.support.kotlin import compile_sources, fetch_android, fetch_runtime

pytestmark = pytest.mark.timeout(600)

PLACE = "repository/com/acme/detect/1.2.3/detect-1.2.3"
POM = "{http://maven.apache.org/POM/4.0.0}"
PROJECT = """\
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>com.acme</groupId><artifactId>app</artifactId><version>1</version>
<repositories><repository><id>bundle</id><url>{repository}</url>
<releases><checksumPolicy>fail</checksumPolicy></releases></repository></repositories>
<dependencies><dependency><groupId>com.acme</groupId><artifactId>detect</artifactId><version>1.2.3</version>
<type>aar</type><exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
</dependency></dependencies></project>
"""
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


@pytest.fixture(scope="module")
def archive(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle, verified while it was built."""
    fetch_android(bundler.cache)
    folder = tmp_path_factory.mktemp("archive")
    return build(bundler, models.save(models.cnn(batch=1), folder, "cnn.onnx"), folder / "out")


def build(bundler: CommandLine, model: Path, output: Path, *more: str) -> Path:
    arguments = (
        "--name",
        "detect",
        "--target",
        "android-arm64",
        "--format",
        "aar",
        "--package-name",
        "com.acme.detect",
    )
    return Path(bundler.build(model, *arguments, "--version", "1.2.3", "--output", output, *more)["bundle"])


def list_entries(bundle: Path) -> list[str]:
    with zipfile.ZipFile(bundle / f"{PLACE}.aar") as opened:
        return opened.namelist()


def test_maven_resolves_it_from_the_folder(archive: Path, tmp_path: Path) -> None:
    """With an empty repository of its own, and a checksum that is missing or wrong as an error."""
    project = tmp_path / "pom.xml"
    project.write_text(PROJECT.format(repository=(archive / "repository").as_uri()), "utf-8")
    command = (str(find_toolchain(MAVEN.name).program), "-q", "-B", "-f", str(project), COPY)
    places = (f"-DoutputDirectory={tmp_path / 'files'}", f"-Dmaven.repo.local={tmp_path / 'own'}")
    done = subprocess.run((*command, *places), capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = (tmp_path / "files").iterdir()
    assert found.name == "detect-1.2.3.aar"
    assert found.read_bytes() == (archive / f"{PLACE}.aar").read_bytes()


def test_it_has_what_a_build_of_an_app_takes_from_it(archive: Path) -> None:
    entries = list_entries(archive)
    assets = [name for name in entries if name.startswith("assets/")]
    assert [name for name in entries if name not in assets] == [
        *("AndroidManifest.xml", "classes.jar", "R.txt", "proguard.txt")
    ]
    assert "assets/com.acme.detect/payload/runtime.json" in assets
    assert "assets/com.acme.detect/payload/models/cpu/model.onnx" in assets
    with zipfile.ZipFile(archive / f"{PLACE}.aar") as opened:
        assert opened.read("proguard.txt").splitlines()[-1] == b"-keep class ai.onnxruntime.** { *; }"
        manifest = ET.fromstring(opened.read("AndroidManifest.xml"))  # noqa: S314 (written by bundler)
        with zipfile.ZipFile(opened.open("classes.jar")) as classes:
            names = classes.namelist()
    assert manifest.get("package") == "com.acme.detect"
    assert [child.tag for child in manifest] == ["uses-sdk"]
    assert {"com/acme/detect/Detect.class", "com/acme/detect/loader/AssetPayload.class"} <= set(names)
    assert {name.partition("/")[0] for name in names} == {"com", "META-INF"}


def test_the_pom_names_what_it_requires(archive: Path) -> None:
    pom = ET.parse(archive / f"{PLACE}.pom").getroot()  # noqa: S314 (written by bundler)
    assert pom.findtext(f"{POM}packaging") == "aar"
    rows = [[child.text for child in row][1:] for row in pom.iter(f"{POM}dependency")]
    assert [row[0] for row in rows] == ["onnxruntime-android", "kotlin-stdlib", "kotlinx-coroutines-core-jvm"]
    assert rows[0] == ["onnxruntime-android", "1.29.0", "aar", "compile"]


def test_every_file_of_the_repository_has_its_checksums(archive: Path) -> None:
    files = [path for path in (archive / "repository").rglob("*.*") if path.suffix in (".aar", ".pom", ".jar")]
    assert len(files) == 3
    for path in files:
        for algorithm in ("sha1", "sha256"):
            noted = path.with_name(f"{path.name}.{algorithm}").read_text("ascii")
            assert noted == hashlib.new(algorithm, path.read_bytes(), usedforsecurity=False).hexdigest()


def test_two_builds_are_equal(archive: Path, bundler: CommandLine, tmp_path: Path) -> None:
    again = build(bundler, archive.parents[1] / "cnn.onnx", tmp_path / "elsewhere")
    assert digest_folder(again) == digest_folder(archive)


def test_an_app_compiles_against_it_as_its_readme_says(archive: Path, bundler: CommandLine, tmp_path: Path) -> None:
    readme = (archive / "README.md").read_text("utf-8")
    (snippet,) = (text for text in re.findall(r"```kotlin\n(.*?)```", readme, re.DOTALL) if "suspend fun" in text)
    assert 'implementation("com.acme:detect:1.2.3")' in readme
    assert "maven { url = " in readme
    (tmp_path / "Readme.kt").write_text(snippet, "utf-8")
    classes = take_classes(archive, tmp_path)
    libraries = (classes, *fetch_runtime(bundler.cache), fetch_android(bundler.cache))
    compile_sources(bundler.cache, [tmp_path / "Readme.kt"], libraries, tmp_path / "classes")
    assert (tmp_path / "classes/ReadmeKt.class").is_file()


def take_classes(bundle: Path, folder: Path) -> Path:
    with zipfile.ZipFile(bundle / f"{PLACE}.aar") as opened:
        (folder / "classes.jar").write_bytes(opened.read("classes.jar"))
    return folder / "classes.jar"


def test_its_own_classes_reproduced_the_golden_set(archive: Path, bundler: CommandLine) -> None:
    proof = read_document(archive / "bundle.json")["proof"]
    (cpu,) = (variant for variant in proof["variants"] if variant["variant"] == "cpu")
    assert cpu["level"] == "stand-in"
    assert "by the module's own loader, except its Android classes, on the" in cpu["reason"]
    assert cpu["reason"].endswith("with onnxruntime 1.29.0; its class Detect gave the same outputs")
    assert "Stand-in  cpu" in bundler.run("verify", archive).expect(0).out


def test_an_altered_archive_is_not_the_one_that_was_built(archive: Path, bundler: CommandLine, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(archive, tmp_path / "copy"))
    replace_entries(copy / f"{PLACE}.aar", {"proguard.txt": b""})
    assert "detect-1.2.3.aar" in bundler.run("verify", copy).expect(8).err


def test_a_class_that_answers_otherwise_is_found(archive: Path, bundler: CommandLine, tmp_path: Path) -> None:
    """The models are whole, the sources too, and the digests were renewed: the compiled loader is another."""
    copy = Path(shutil.copytree(archive, tmp_path / "copy"))
    with zipfile.ZipFile(copy / f"{PLACE}-sources.jar") as sources:
        text = sources.read("com/acme/detect/loader/Caller.kt").decode("utf-8")
    broken = text.replace("return call(values, made, options)", "return call(values, made, options).also { spoil(it) }")
    assert broken != text
    spoil = "\n    private fun spoil(outputs: Array<Tensor>) = outputs.forEach { it.floats().put(0, 9f) }\n"
    (tmp_path / "Caller.kt").write_text(broken.rstrip().removesuffix("}") + spoil + "}\n", "utf-8")
    classes = take_classes(copy, tmp_path)
    work = Compilation(
        sources=[tmp_path / "Caller.kt"], libraries=fetch_runtime(bundler.cache), module="detect", friends=[classes]
    )
    compile_kotlin(work, tmp_path / "made", Environments(bundler.cache), SILENT)
    made = {path.relative_to(tmp_path / "made").as_posix(): path.read_bytes() for path in tmp_path.rglob("*.class")}
    replace_entries(classes, made)
    replace_entries(copy / f"{PLACE}.aar", {"classes.jar": classes.read_bytes()})
    renew_digest(copy, copy / f"{PLACE}.aar")
    answer = bundler.run("verify", copy).expect(8)
    assert "the module's own loader on the Java virtual machine" in answer.err + answer.out
