"""The example app as an APK: compiled, dexed, linked, aligned and signed by the tools that Android's own builds end in.

Nothing here runs on a phone. What a phone's installer and loader read of it is checked: content, alignment, manifest,
permissions and signature.
"""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from bundler.emitters.android.native_libraries import PAGE, check_libraries
from tests.support.android_tools import ToolError, provide_tools
from tests.support.apk import Apk, build_apk
from tests.support.command_line import CommandLine
from tests.support.kotlin import fetch_runtime
from tests.support.real_models import EXAMPLES, fetch_example, run_python

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def projects(bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model for any phone, and for one with an NPU that takes it."""
    provide_tools()
    fetch_runtime(bundler.cache)
    folder = tmp_path_factory.mktemp("apk")
    model = fetch_example("text_orientation", folder / "model.onnx")
    fix = EXAMPLES / "text_orientation" / "fix_sizes.py"
    run_python(Path(sys.executable), [fix, model, folder / "orientation.onnx"])
    targets = ("--target", "android-arm64", "--target", "snapdragon-8g3", "--format", "gradle", "--no-prove")
    options = ("--package-name", "com.acme.orientation", "--version", "1.2.3", "--output", folder / "out")
    bundler.build_all(folder / "orientation.onnx", *targets, *options)
    return folder / "out"


@pytest.fixture(scope="module")
def plain(projects: Path, bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Apk:
    """For any phone, not shrunk."""
    folder = tmp_path_factory.mktemp("plain")
    return build_apk(projects / "orientation-android-arm64", bundler.cache, folder, shrunk=False)


@pytest.fixture(scope="module")
def shrunk(projects: Path, bundler: CommandLine, tmp_path_factory: pytest.TempPathFactory) -> Apk:
    """For a phone with an NPU, shrunk by the rules that the module gives to its app."""
    folder = tmp_path_factory.mktemp("shrunk")
    return build_apk(projects / "orientation-snapdragon-8g3", bundler.cache, folder, shrunk=True)


@pytest.fixture(params=["plain", "shrunk"])
def apk(request: pytest.FixtureRequest) -> Apk:
    found: Apk = request.getfixturevalue(request.param)
    return found


def test_every_file_of_the_payload_is_there_as_it_was(apk: Apk) -> None:
    """Models as they are, so that they can be mapped; small texts compressed."""
    files = {path.relative_to(apk.project.assets).as_posix(): path for path in apk.project.assets.rglob("*.*")}
    with zipfile.ZipFile(apk.path) as archive:
        assets = {entry.filename.removeprefix("assets/"): entry for entry in archive.infolist() if is_asset(entry)}
        assert set(assets) == {name for name, path in files.items() if path.is_file()}
        for name, entry in assets.items():
            assert archive.read(entry) == files[name].read_bytes()
            stored = entry.compress_type == zipfile.ZIP_STORED
            assert stored == (not name.endswith(".json")), name


def is_asset(entry: zipfile.ZipInfo) -> bool:
    return entry.filename.startswith("assets/")


def test_what_is_stored_begins_where_it_can_be_mapped(apk: Apk) -> None:
    apk.tools.run_native("zipalign", "-c", "-p", "4", apk.path)
    with zipfile.ZipFile(apk.path) as archive:
        stored = [entry for entry in archive.infolist() if entry.compress_type == zipfile.ZIP_STORED]
        for entry in stored:
            assert apk.find_start(entry) % (PAGE if entry.filename.endswith(".so") else 4) == 0, entry.filename


def test_libraries_are_packed_as_the_build_file_says(plain: Apk, shrunk: Apk) -> None:
    """Mapped out of the APK, but for those of an NPU, which are opened as files."""
    for apk, way in ((plain, zipfile.ZIP_STORED), (shrunk, zipfile.ZIP_DEFLATED)):
        with zipfile.ZipFile(apk.path) as archive:
            packed = {entry.filename: entry for entry in archive.infolist() if entry.filename.startswith("lib/")}
            assert sorted(packed) == ["lib/arm64-v8a/libonnxruntime.so", "lib/arm64-v8a/libonnxruntime4j_jni.so"]
            assert {entry.compress_type for entry in packed.values()} == {way}
            assert {name: archive.read(entry) for name, entry in packed.items()} == apk.libraries
        sizes = {library.name: library.size for library in check_libraries(apk.path, apk.project.abi)}
        assert sizes == {name: len(content) for name, content in apk.libraries.items()}


def test_the_manifest_says_what_the_build_files_say(apk: Apk) -> None:
    badging = apk.dump("badging").splitlines()
    assert badging[0].startswith("package: name='com.acme.orientation.example' versionCode='1' versionName='1.2.3'")
    assert f"sdkVersion:'{apk.project.value('minSdk')}'" in badging
    assert "targetSdkVersion:'35'" in badging
    (activity,) = (line for line in badging if line.startswith("launchable-activity"))
    assert "name='com.acme.orientation.example.MainActivity'" in activity


def test_only_an_app_with_an_npu_names_the_library_that_reaches_it(plain: Apk, shrunk: Apk) -> None:
    """And none that must be there: the app is installed on every phone."""
    lines = [[line for line in apk.dump("badging").splitlines() if "native-library" in line] for apk in (plain, shrunk)]
    assert lines == [[], ["uses-native-library-not-required:'libcdsprpc.so'"]]
    extracted = [re.search(r"extractNativeLibs\(\w+\)=(\w+)", apk.dump("xmltree")) for apk in (plain, shrunk)]
    assert [match and match[1] for match in extracted] == ["false", "true"]


def test_the_app_asks_for_no_permission(apk: Apk) -> None:
    assert apk.dump("permissions").split() == ["package:", "com.acme.orientation.example"]
    assert "permission" not in apk.dump("xmltree")


def test_the_signature_holds_what_is_in_the_app(apk: Apk, tmp_path: Path) -> None:
    assert "Verified using v2 scheme (APK Signature Scheme v2): true" in apk.verify()
    altered = tmp_path / "altered.apk"
    shutil.copy(apk.path, altered)
    with zipfile.ZipFile(apk.path) as archive:
        (entry,) = (entry for entry in archive.infolist() if entry.filename.endswith("models/cpu/model.onnx"))
    with altered.open("r+b") as file:
        file.seek(apk.find_start(entry) + entry.file_size // 2)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(ToolError, match="DOES NOT VERIFY"):
        apk.verify(altered)


def test_shrinking_keeps_what_native_code_looks_up_by_name(plain: Apk, shrunk: Apk, bundler: CommandLine) -> None:
    """The runtime's classes, by the module's rule; of the loader and of Kotlin's libraries what is used."""
    with zipfile.ZipFile(fetch_runtime(bundler.cache)[0]) as jar:
        named = [name.removesuffix(".class") for name in jar.namelist() if name.endswith(".class")]
    runtime = [f"L{name};".encode() for name in named if name.startswith("ai/onnxruntime/")]
    assert len(runtime) > 50
    whole, small = read_classes(plain), read_classes(shrunk)
    assert [name for name in runtime if name not in small] == []
    assert b"Lcom/acme/orientation/example/MainActivity;" in small
    assert b"Lcom/acme/orientation/loader/AssetPayload;" in whole
    assert b"Lcom/acme/orientation/loader/AssetPayload;" not in small
    assert len(small) < len(whole) / 5


def read_classes(apk: Apk) -> bytes:
    with zipfile.ZipFile(apk.path) as archive:
        return b"".join(archive.read(name) for name in archive.namelist() if name.endswith(".dex"))
