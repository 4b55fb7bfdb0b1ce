"""The example app of a Gradle project as an APK: what Gradle's plugin does, by hand, from what the build files say.

The runtime's archive for Android cannot be fetched everywhere, so its classes are those of the same version's jar for
servers, and its libraries that jar's for Linux on the same processor: good enough to be packed, not to be run.
"""

from __future__ import annotations

import re
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest

from tests.support.android_tools import AndroidTools, provide_tools
from tests.support.kotlin import (
    compile_sources,
    fetch_android,
    fetch_r8,
    fetch_runtime,
    find_java,
    find_java_home,
    run_java,
)

ANDROID: Final = "http://schemas.android.com/apk/res/android"
NATIVES: Final = {"arm64-v8a": "linux-aarch64", "x86_64": "linux-x64"}
"""Folders of the runtime's jar, by ABI."""

_PASSWORD: Final = "password"  # noqa: S105 (of a key that lives as long as the test)
_SECONDS: Final = 500
_UNNAMED: Final = "-dontwarn org.jetbrains.annotations.**"
"""Annotations for editors, which Kotlin's library names and nothing loads."""


@dataclass(frozen=True)
class GradleProject:
    """What the build files of a bundle's project say."""

    root: Path

    @cached_property
    def example(self) -> str:
        """The build file of the app, which decides what the APK is."""
        return (self.root / "example/build.gradle.kts").read_text("utf-8")

    def value(self, name: str) -> str:
        """`minSdk = 24`, `applicationId = "com.acme"`."""
        (found,) = re.findall(rf'^ +{name} = "?([^"\n]+)"?$', self.example, re.MULTILINE)
        return str(found)

    @property
    def uncompressed(self) -> list[str]:
        """Endings of files that are stored as they are."""
        (found,) = re.findall(r"noCompress \+= listOf\((.*)\)", self.example)
        return re.findall(r'"([^"]+)"', found)

    @property
    def extracted(self) -> bool:
        """Whether native libraries are compressed, and unpacked at installation."""
        return "useLegacyPackaging = true" in self.example

    @property
    def abi(self) -> str:
        (found,) = re.findall(r'abiFilters \+= "(.*)"', (self.root / "bundle/build.gradle.kts").read_text("utf-8"))
        return str(found)

    @property
    def assets(self) -> Path:
        return self.root / "bundle/src/main/assets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Apk:
    """A signed app, the project that it is from, and the native libraries that were packed, by name."""

    path: Path
    project: GradleProject
    libraries: Mapping[str, bytes]
    tools: AndroidTools

    def dump(self, what: str) -> str:
        """What `aapt2 dump` says of it."""
        file = ("--file", "AndroidManifest.xml") if what == "xmltree" else ()
        return self.tools.run_native("aapt2", "dump", what, *file, self.path)

    def verify(self, path: Path | None = None) -> str:
        """What `apksigner` says of its signature; raises where it is none."""
        return self.tools.run_signer("verify", "--verbose", path or self.path)

    def find_start(self, entry: zipfile.ZipInfo) -> int:
        """Where the data of an entry begin in the file."""
        with self.path.open("rb") as file:
            file.seek(entry.header_offset + 26)
            name, extra = (int.from_bytes(file.read(2), "little") for _ in range(2))
        return entry.header_offset + 30 + name + extra


def build_apk(root: Path, cache: Path, folder: Path, *, shrunk: bool) -> Apk:
    """The app in a release build where it is `shrunk` by R8, and else as D8 makes it."""
    tools, project = provide_tools(), GradleProject(root)
    framework, (runtime, *libraries) = fetch_android(cache), fetch_runtime(cache)
    linked, rules = folder / "linked.apk", folder / "rules.pro"
    merge_manifests(project, folder / "AndroidManifest.xml")
    tools.run_native("aapt2", *_link(project, folder / "AndroidManifest.xml", framework, rules), "-o", linked)
    own = _compile(project, cache, (runtime, *libraries, framework), folder)
    program = (own, _take_classes(runtime, folder / "runtime.jar"), *libraries)
    dex = folder / "dex"
    dex.mkdir()
    options: list[str | Path] = ["--release", "--min-api", project.value("minSdk"), "--lib", framework, "--output", dex]
    if shrunk:
        kept = (root / "bundle/consumer-rules.pro", _write(folder / "own.pro", _UNNAMED), rules)
        options += ["--lib", find_java_home(), *(part for file in kept for part in ("--pg-conf", file))]
    _run_r8(cache, "R8" if shrunk else "D8", *options, *program)
    natives = _read_natives(runtime, project.abi)
    _add(linked, project, sorted(dex.glob("*.dex")), natives)
    tools.run_native("zipalign", "-p", "4", linked, folder / "aligned.apk")
    _sign(tools, folder / "aligned.apk", folder / "example.apk", project.value("minSdk"))
    return Apk(path=folder / "example.apk", project=project, libraries=natives, tools=tools)


def merge_manifests(project: GradleProject, target: Path) -> None:
    """The app's manifest with what the module adds to it, and what the build files say."""
    ET.register_namespace("android", ANDROID)
    app = ET.parse(project.root / "example/src/main/AndroidManifest.xml")  # noqa: S314 (written by bundler)
    module = ET.parse(project.root / "bundle/src/main/AndroidManifest.xml").getroot()  # noqa: S314
    manifest, application = app.getroot(), app.getroot().find("application")
    assert application is not None
    assert {child.tag for child in module} <= {"application"}, "merging knows nothing else"
    manifest.set("package", project.value("applicationId"))
    application.set(f"{{{ANDROID}}}extractNativeLibs", "true" if project.extracted else "false")
    application.extend(module.findall("application/*"))
    app.write(target, "utf-8", xml_declaration=True)


def _link(project: GradleProject, manifest: Path, framework: Path, rules: Path) -> list[str | Path]:
    named = {"--min-sdk-version": "minSdk", "--target-sdk-version": "targetSdk"}
    named |= {"--version-code": "versionCode", "--version-name": "versionName"}
    values = [part for option, name in named.items() for part in (option, project.value(name))]
    stored = [part for ending in project.uncompressed for part in ("-0", ending)]
    start = ("link", "--manifest", manifest, "-I", framework, "-A", project.assets, "--proguard", rules)
    return [*start, *values, *stored]


def _compile(project: GradleProject, cache: Path, libraries: Sequence[Path], folder: Path) -> Path:
    compile_sources(cache, sorted(project.root.glob("*/src/main/kotlin/**/*.kt")), libraries, folder / "classes")
    with zipfile.ZipFile(folder / "own.jar", "w") as jar:
        for path in sorted((folder / "classes").rglob("*.class")):
            jar.write(path, path.relative_to(folder / "classes").as_posix())
    return folder / "own.jar"


def _take_classes(runtime: Path, target: Path) -> Path:
    with zipfile.ZipFile(runtime) as source, zipfile.ZipFile(target, "w") as jar:
        for name in source.namelist():
            if name.endswith(".class"):
                jar.writestr(name, source.read(name))
    return target


def _write(target: Path, text: str) -> Path:
    target.write_text(f"{text}\n", "utf-8")
    return target


def _run_r8(cache: Path, program: str, *arguments: str | Path) -> None:
    start = ("-Xmx1500m", "-cp", fetch_r8(cache), f"com.android.tools.r8.{program}")
    run_java([*map(str, start), *map(str, arguments)], timeout=_SECONDS)


def _read_natives(runtime: Path, abi: str) -> dict[str, bytes]:
    folder = f"ai/onnxruntime/native/{NATIVES[abi]}/"
    with zipfile.ZipFile(runtime) as jar:
        names = [name for name in jar.namelist() if name.startswith(folder) and name.endswith(".so")]
        return {f"lib/{abi}/{name.removeprefix(folder)}": jar.read(name) for name in names}


def _add(apk: Path, project: GradleProject, classes: Sequence[Path], natives: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(apk, "a") as archive:
        for path in classes:
            archive.write(path, path.name, zipfile.ZIP_DEFLATED)
        for name, content in natives.items():
            archive.writestr(name, content, zipfile.ZIP_DEFLATED if project.extracted else zipfile.ZIP_STORED)


def _sign(tools: AndroidTools, source: Path, target: Path, min_sdk: str) -> None:
    keytool = Path(find_java()).resolve().with_name("keytool")
    if not keytool.is_file():
        pytest.skip("keytool is not beside java: install a whole Java, 17 or newer")
    store = ("-keystore", str(target.with_name("key.p12")), "-storepass", _PASSWORD, "-alias", "test")
    made = ("-genkeypair", *store, "-keyalg", "EC", "-dname", "CN=test", "-validity", "2")
    subprocess.run([str(keytool), *made], check=True, capture_output=True, timeout=60)
    key = ("--ks", target.with_name("key.p12"), "--ks-pass", f"pass:{_PASSWORD}", "--min-sdk-version", min_sdk)
    tools.run_signer("sign", *key, "--out", target, source)
