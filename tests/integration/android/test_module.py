"""A module for Android as a mobile team has it: what Gradle, Android and the compiler read of it."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support import models
from tests.support.altered_bundles import renew_digest
from tests.support.command_line import CommandLine
from tests.support.kotlin import TESTS, compile_sources, fetch_android, fetch_runtime
from tests.support.recurrent_models import make_gru

ANDROID = "{http://schemas.android.com/apk/res/android}"


@pytest.fixture(scope="module")
def module(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models in one module, one of them with state: verified while it was built."""
    fetch_runtime(bundler.cache)
    folder = tmp_path_factory.mktemp("android")
    image = models.save(models.cnn(batch=1), folder, "cnn.onnx")
    sound = models.save(make_gru(), folder, "gru.onnx")
    built = bundler.build(
        *(f"detect={image}", f"hear={sound}", "--bundle", "senses", "--state", "hear:h0=hn"),
        *("--target", "android-arm64", "--format", "gradle", "--package-name", "com.acme.senses"),
        *("--output", folder / "out"),
    )
    return Path(built["bundle"])


def sources(module: Path) -> list[Path]:
    return sorted(module.rglob("*.kt"))


def compile_all(module: Path, cache: Path, extra: list[Path], folder: Path) -> None:
    """The module, its test on a phone, the example app and `extra`, against the framework's classes."""
    stubs = sorted((TESTS / "stubs").glob("*.kt"))
    libraries = (*fetch_runtime(cache), fetch_android(cache))
    compile_sources(cache, [*sources(module), *stubs, *extra], libraries, folder)


def test_all_of_it_compiles_with_the_readme(module: Path, bundler: CommandLine, tmp_path: Path) -> None:
    """Every line of Kotlin in the project, and the function of the README as it stands."""
    readme = (module / "README.md").read_text("utf-8")
    (snippet,) = (text for text in re.findall(r"```kotlin\n(.*?)```", readme, re.DOTALL) if "suspend fun" in text)
    (tmp_path / "Readme.kt").write_text(snippet, "utf-8")
    compile_all(module, bundler.cache, [tmp_path / "Readme.kt"], tmp_path / "classes")
    assert (tmp_path / "classes/com/acme/senses/SensesBundle.class").is_file()
    assert (tmp_path / "classes/com/acme/senses/example/MainActivity.class").is_file()
    assert (tmp_path / "classes/ReadmeKt.class").is_file()


def test_both_runtimes_reproduced_the_golden_set(module: Path) -> None:
    proof = json.loads((module / "bundle.json").read_text("utf-8"))["proof"]
    cpu = [variant for variant in proof["variants"] if variant["variant"] == "cpu"]
    assert [variant["level"] for variant in cpu] == ["stand-in", "stand-in"]
    for variant in cpu:
        assert "ran with onnxruntime 1.29.0 for Python" in variant["reason"]
        assert "by the module's own loader, except its Android classes, on the" in variant["reason"]
        assert "Java virtual machine with onnxruntime 1.29.0; its class" in variant["reason"]
        assert variant["reason"].endswith("gave the same outputs")


def test_verify_takes_a_path_of_any_form(module: Path, bundler: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(module.parent)
    assert "Stand-in  detect/cpu, hear/cpu" in bundler.run("verify", module.name).expect(0).out


OTHERWISE = {
    "it answers otherwise": (
        "loader/Caller.kt",
        "return call(values, made, options)",
        "return call(values, made, options).also { it.forEach { one -> one.floats().put(0, 9f) } }",
        "out of tolerance",
    ),
    "a class of another component": (
        "SensesBundle.kt",
        'Hear(bundle.model("hear"))',
        'Hear(bundle.model("detect"))',
        "Hear opens the component detect",
    ),
    "a reset that does nothing": (
        "SensesBundle.kt",
        "public fun reset(): Unit = stream.reset()",
        "public fun reset(): Unit = Unit",
        "Hear: the first step after a reset gives another scores than the model",
    ),
    "assets of another bundle": (
        "SensesBundle.kt",
        'ASSETS = "com.acme.senses/payload"',
        'ASSETS = "com.acme.other/payload"',
        "openBlocking: IntegrityException",
    ),
    "another configuration": ("SensesBundle.kt", 'CONFIG_SHA256 = "', 'CONFIG_SHA256 = "0', "IntegrityException"),
    "one sample is tested, and all are reported": (
        "loader/SelfTest.kt",
        "for (sample in golden.samples)",
        "for (sample in golden.samples.take(1))",
        "its self-test runs 1 of",
    ),
    "it says that it cannot run here": (
        "loader/Variants.kt",
        "class Tried(val opened: OpenVariant?, val reason: String)",
        "class Tried(one: OpenVariant?, val reason: String) { val opened: OpenVariant? = one.takeIf { false } }",
        "cannot run here",
    ),
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_a_loader_that_was_altered_is_no_verified_module(
    module: Path, bundler: CommandLine, tmp_path: Path, what: str
) -> None:
    """The models are whole, and the module's own code is not: its digests were renewed with it."""
    name, old, new, reason = OTHERWISE[what]
    copy = Path(shutil.copytree(module, tmp_path / "copy"))
    alter(copy, name, old, new)
    answer = bundler.run("verify", copy).expect(8)
    assert "the module's own loader" in answer.err + answer.out
    assert reason in answer.err + answer.out


def test_a_loader_that_compares_values_with_themselves_is_no_verified_module(
    module: Path, bundler: CommandLine, tmp_path: Path
) -> None:
    """All of its calls answer alike."""
    copy = Path(shutil.copytree(module, tmp_path / "copy"))
    given = "return Array(outputs.size) { made[it] ?: take(results, outputs[it].name) }"
    alter(
        copy, "loader/Caller.kt", given, f"{given}.also {{ all -> all.forEach {{ one -> one.floats().put(0, 9f) }} }}"
    )
    alter(copy, "loader/SelfTest.kt", "if (isStable || !same) actual else recorded", "recorded")
    answer = bundler.run("verify", copy).expect(8)
    assert "and its loader reports 0" in answer.err + answer.out


def alter(module: Path, name: str, old: str, new: str) -> None:
    (file,) = module.rglob(name)
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")
    renew_digest(module, file)


def test_the_catalogue_names_what_the_build_files_use(module: Path) -> None:
    catalogue = tomllib.loads((module / "gradle/libs.versions.toml").read_text("utf-8"))
    runtime = catalogue["libraries"]["onnxruntime-android"]
    assert (runtime["group"], runtime["version"]) == ("com.microsoft.onnxruntime", "1.29.0")
    for file in ("bundle/build.gradle.kts", "example/build.gradle.kts", "build.gradle.kts"):
        text = (module / file).read_text("utf-8")
        for name in re.findall(r"libs\.(?!plugins)([a-z.]+)\)", text):
            assert name.replace(".", "-") in catalogue["libraries"]
        for name in re.findall(r"libs\.plugins\.([a-z.]+)\)", text):
            assert name.replace(".", "-") in catalogue["plugins"]


def test_the_build_file_says_what_android_needs(module: Path) -> None:
    text = (module / "bundle/build.gradle.kts").read_text("utf-8")
    assert 'namespace = "com.acme.senses"' in text
    assert "minSdk = 24" in text
    assert 'abiFilters += "arm64-v8a"' in text
    assert 'noCompress += listOf("onnx", "ort", "bin", "data", "weights")' in text
    assert "useLegacyPackaging" not in text  # only the NPU's libraries must be files
    suffixes = {path.suffix.removeprefix(".") for path in (module / "bundle/src/main/assets").rglob("models/**/*.*")}
    assert suffixes <= {"onnx", "ort", "bin", "data", "weights"}


def test_manifests_are_xml(module: Path) -> None:
    library = ET.parse(module / "bundle/src/main/AndroidManifest.xml").getroot()  # noqa: S314 (written by bundler)
    assert library.find("application/uses-native-library") is None
    example = ET.parse(module / "example/src/main/AndroidManifest.xml").getroot()  # noqa: S314
    assert example.find("application/activity").get(f"{ANDROID}name") == ".MainActivity"  # type: ignore[union-attr]
    assert example.findall("uses-permission") == []


def test_two_modules_share_no_class(module: Path, bundler: CommandLine, tmp_path: Path) -> None:
    """So that one app can have both."""
    model = models.save(models.mlp(batch=1), tmp_path)
    other = Path(
        bundler.build(
            *(model, "-t", "android-arm64", "--format", "gradle", "--no-prove", "--package-name", "com.acme.other"),
            *("--output", tmp_path / "out"),
        )["bundle"]
    )
    packages = [
        {re.search(r"^package (.*)$", path.read_text("utf-8"), re.MULTILINE)[1] for path in sources(one)}  # type: ignore[index]
        for one in (module, other)
    ]
    assert not packages[0] & packages[1]
    assets = [{path.name for path in (one / "bundle/src/main/assets").iterdir()} for one in (module, other)]
    assert assets == [{"com.acme.senses"}, {"com.acme.other"}]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-t", "linux-x64", "--format", "gradle"), "have no format 'gradle'"),
        (("-t", "ios-arm64", "--format", "gradle"), "a Gradle module runs on Android, not on ios"),
        (("-t", "android-arm64", "--format", "gradle", "--package-name", "x"), "cannot be the package"),
    ],
)
def test_what_does_not_fit_is_refused(warm: CommandLine, tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    model = models.save(models.mlp(), tmp_path)
    answer = warm.run("build", model, *arguments, "--output", tmp_path / "out")
    assert answer.code in (2, 4)
    assert says in answer.err
