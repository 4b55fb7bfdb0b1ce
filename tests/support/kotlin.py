"""Java, Maven and the Kotlin compiler; a test that needs them is skipped where they are not, and says why."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bundler.emitters.android.framework import FRAMEWORK, FRAMEWORK_LOCK
from bundler.emitters.jvm.artifacts import list_runtime, name_runtime_lock
from bundler.emitters.jvm.compiling import Compilation, compile_kotlin
from bundler.emitters.jvm.maven import MavenArtifacts, fetch_artifacts
from bundler.environments.lockfiles import parse_lock
from bundler.environments.registry import Environments
from bundler.model.errors import EnvironmentMissingError
from bundler.model.events import SILENT
from bundler.toolchains.java import JAVA, MAVEN
from bundler.toolchains.registry import find_toolchain
from tests.support.command_line import ROOT

SOURCES = ROOT / "templates" / "kotlin"
TESTS = ROOT / "tests" / "kotlin"
VERSION = "1.28.0"
"""Of the runtime that bundles for the JVM bring."""
TOKENIZERS = "media"
"""The environment that has their library."""


@functools.cache
def find_java() -> str:
    """The command of Java; skips the test without it, and without Maven, which fetches what runs on it."""
    try:
        find_toolchain(MAVEN.name)
        return str(find_toolchain(JAVA.name).program)
    except EnvironmentMissingError as error:
        pytest.skip(f"{error.message}: {error.hint}")


def fetch_runtime(cache: Path) -> tuple[Path, ...]:
    """ONNX Runtime with Kotlin's library; skips the test where no repository gives them."""
    find_java()
    return _fetch(cache, name_runtime_lock(VERSION), list_runtime(VERSION))


def fetch_junit(cache: Path) -> Path:
    """What finds and runs tests, as one jar."""
    return _fetch_one(cache, "junit")


def fetch_android(cache: Path) -> Path:
    """The classes of Android's framework: 137 MB, in which nothing but the compiler looks."""
    find_java()
    (found,) = _fetch(cache, FRAMEWORK_LOCK, FRAMEWORK)
    return found


def fetch_r8(cache: Path) -> Path:
    """What makes Android's byte code: D8, and R8, which shrinks it beside."""
    return _fetch_one(cache, "r8")


def find_java_home() -> Path:
    """The folder of the whole Java that runs here."""
    return Path(find_java()).resolve().parents[1]


def _fetch_one(cache: Path, name: str) -> Path:
    find_java()
    lock = parse_lock(name, (TESTS / f"{name}.lock").read_text("utf-8"))
    try:
        (found,) = fetch_artifacts(lock, Environments(cache)).values()
    except EnvironmentMissingError as error:
        pytest.skip(f"{lock.pins[0].name} could not be fetched: {error.message}")
    return found


def _fetch(cache: Path, name: str, source: MavenArtifacts) -> tuple[Path, ...]:
    environments = Environments(cache)
    try:
        lock = environments.lock_for(name, source)
        return tuple(fetch_artifacts(lock, environments).values())
    except EnvironmentMissingError as error:
        pytest.skip(f"{name} could not be fetched: {error.message}")


def write_token_vectors(cache: Path, folder: Path) -> None:
    """What tokenizers make of texts, by the library that has them; skips the test where that cannot be had."""
    try:
        python = Environments(cache).resolve(TOKENIZERS).python
    except EnvironmentMissingError as error:
        pytest.skip(f"the environment {TOKENIZERS} could not be made: {error.message}")
    command = (str(python), "-m", "tests.support.token_vectors", str(folder))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TOKENIZERS_PARALLELISM": "false"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT, timeout=200)
    assert done.returncode == 0, done.stderr


def compile_loader(cache: Path, folder: Path) -> Path:
    """The classes of the loader as it is kept, for the JVM, with all that prepares inputs."""
    parts = ("core", "jvm", "preparation", "images", "jvm_images", "audio", "text")
    sources = sorted(source for part in parts for source in SOURCES.glob(f"{part}/*.kt"))
    sources.append(SOURCES / "android_images" / "YuvPixels.kt")
    work = Compilation(sources=sources, libraries=fetch_runtime(cache), module="loader")
    compile_kotlin(work, folder, Environments(cache), SILENT)
    return folder


def compile_sources(
    cache: Path, sources: Sequence[Path], libraries: Sequence[Path], folder: Path, friends: Sequence[Path] = ()
) -> None:
    """Compile sources of a test, which see what is internal in `friends`."""
    work = Compilation(sources=sources, libraries=libraries, module="tests", friends=friends)
    compile_kotlin(work, folder, Environments(cache), SILENT, rules=())


def compile_java(source: Path, libraries: Sequence[Path], folder: Path) -> None:
    """Compile one file of Java with every warning as an error."""
    javac = Path(find_java()).resolve().with_name("javac")
    if not javac.is_file():
        pytest.skip("javac is not beside java: install a JDK, 17 or newer")
    path = os.pathsep.join(map(str, libraries))
    command = (str(javac), "-Xlint:all", "-Werror", "--release", "11", "-cp", path, "-d", str(folder), str(source))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def run_java(
    arguments: Sequence[str],
    *,
    properties: Mapping[str, object] | None = None,
    codes: Sequence[int] = (0,),
    timeout: float = 200,
) -> str:
    """What `java ARGUMENTS` printed; the test fails with all that it said where it ends with none of these codes."""
    given = [f"-D{name}={value}" for name, value in (properties or {}).items()]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        environment = {**os.environ, "HOME": home, "XDG_CACHE_HOME": f"{home}/cache"}
        done = subprocess.run(
            (find_java(), "-XX:+UseSerialGC", *given, *arguments),
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=timeout,
        )
    assert done.returncode in codes, f"{' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def unpack_payload(bundle: Path, folder: Path) -> tuple[Path, str]:
    """The payload of a bundle's jar in `folder`; returns the jar, and the payload's name in it."""
    (jar,) = (path for path in bundle.glob("*.jar") if not path.name.endswith("-sources.jar"))
    with zipfile.ZipFile(jar) as archive:
        (config,) = (name for name in archive.namelist() if name.endswith("payload/runtime.json"))
        prefix = config.removesuffix("runtime.json")
        for name in archive.namelist():
            if name.startswith(prefix) and not name.endswith("/"):
                target = folder / name.removeprefix(prefix)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))
    return jar, prefix
