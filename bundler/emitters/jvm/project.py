"""The jar of a bundle, and what stands beside it."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bundler.emitters.components import describe_loader
from bundler.emitters.contract import EmitRequest
from bundler.emitters.jvm.archives import list_files, repack_jar, write_jar
from bundler.emitters.jvm.artifacts import RUNTIME, list_runtime, name_runtime_lock
from bundler.emitters.jvm.compiling import Compilation, compile_kotlin
from bundler.emitters.jvm.context import Context, make_context
from bundler.emitters.jvm.licences import describe_artifacts
from bundler.emitters.jvm.maven import fetch_artifacts
from bundler.emitters.jvm.names import PackageNames, choose_names, make_version
from bundler.emitters.jvm.preparation import JVM, list_parts
from bundler.emitters.jvm.profile import NATIVES
from bundler.emitters.jvm.sources import write_sources
from bundler.emitters.payload import CONFIG_NAME, PAYLOAD, copy_payload, render_config
from bundler.emitters.rendering import load_template, write_project
from bundler.emitters.writing import copy_file, write_text
from bundler.environments.lockfiles import Lock
from bundler.model.proof import Emitted

TEMPLATE: Final = "jvm"
LIBRARIES: Final = "lib"
"""The folder with the runtime and what else the jar needs, so that no registry is needed to run it."""

_NATIVE: Final = "ai/onnxruntime/native/"
_HOST: Final = ("JvmHost", "Payload", "findPayload")
"""What the rendered class uses of the loader's part for a JVM."""

_DEBUG: Final = ".dSYM/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One artifact that the bundle's POM names."""

    group: str
    name: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a bundle's jar is made from: `project` has the sources, classes, payload and documents; `artifacts` are the
    locked files that it needs, by name.
    """

    request: EmitRequest
    project: Path
    names: PackageNames
    lock: Lock
    artifacts: Mapping[str, Path]

    @property
    def stem(self) -> str:
        """`cls-1.0.0`."""
        return f"{self.names.artifact}-{make_version(self.request.version)}"

    @property
    def natives(self) -> str:
        """The folder of the target's libraries in the runtime's jar."""
        platform = self.request.profile.platform
        return NATIVES[platform.system, platform.architecture]

    @property
    def libraries(self) -> dict[str, str]:
        """The files beside the jar, by artifact: the runtime has the libraries of one system, and says so."""
        runtime = f"onnxruntime-{self.request.profile.runtime.version}-{self.natives}.jar"
        return {name: runtime if name == RUNTIME else path.name for name, path in self.artifacts.items()}


def write_bundle(request: EmitRequest, folder: Path) -> Emitted:
    """Write the jar with its POM, its sources and its libraries. Raises `BundlerError`."""
    draft = _make_draft(request, folder / ".project")
    _place_libraries(draft, folder / LIBRARIES)
    _write_jars(draft, folder)
    copy_file(draft.project / "pom.xml", folder / f"{draft.stem}.pom")
    copy_file(draft.project / "README.md", folder / "README.md")
    shutil.rmtree(draft.project)
    places = {name: f"{LIBRARIES}/{file}" for name, file in draft.libraries.items()}
    return Emitted(
        payload=None,
        package=draft.names.package,
        dependencies=(
            *describe_artifacts(request, draft.lock, folder, places),
            describe_loader(f"{draft.stem}.jar/{draft.names.folder}/loader"),
        ),
        notes=(f"the runtime next to the jar is for {draft.natives} only; the POM names the one for every system",),
    )


def _make_draft(request: EmitRequest, project: Path) -> Draft:
    """Render and compile the classes, and place the payload."""
    names, lock = choose_names(request.config.name, request.package_name), find_lock(request)
    config = render_config(request.config)
    context = make_context(request, hashlib.sha256(config.encode("utf-8")).hexdigest(), JVM)
    artifacts = fetch_artifacts(lock, request.environments, request.reporter)
    _render(context, names, lock, project)
    sources = project / "src" / names.folder
    write_sources(("core", "jvm", *list_parts(request.config, JVM)), names.loader, sources / "loader")
    write_text(project / PAYLOAD / CONFIG_NAME, config)
    copy_payload(request, project / PAYLOAD)
    work = Compilation(
        sources=sorted(sources.rglob("*.kt")), libraries=tuple(artifacts.values()), module=names.artifact
    )
    compile_kotlin(work, project / "classes", request.environments, request.reporter)
    return Draft(request=request, project=project, names=names, lock=lock, artifacts=artifacts)


def _place_libraries(draft: Draft, folder: Path) -> None:
    folder.mkdir()
    for name, path in draft.artifacts.items():
        target = folder / draft.libraries[name]
        if name == RUNTIME:
            repack_jar(path, target, lambda entry: _is_for(entry, draft.natives))
        else:
            copy_file(path, target)


def find_lock(request: EmitRequest) -> Lock:
    """The lock of the runtime and of what else the jar needs."""
    version = request.profile.runtime.version
    return request.environments.lock_for(name_runtime_lock(version), list_runtime(version), request.reporter)


def _render(context: Context, names: PackageNames, lock: Lock, project: Path) -> None:
    fields = {field.name: getattr(context, field.name) for field in dataclasses.fields(context)}
    dependencies = [
        Dependency(group=pin.name.split(":")[0], name=pin.name.split(":")[1], version=pin.version) for pin in lock.pins
    ]
    places = {"sources": f"src/{names.folder}", "type": context.type}
    write_project(
        load_template(TEMPLATE), {**fields, "host_classes": _HOST, "dependencies": dependencies}, places, project
    )


def _is_for(entry: str, natives: str) -> bool:
    """Whether an entry of the runtime's jar is needed where its libraries are those of `natives`."""
    if not entry.startswith(_NATIVE):
        return True
    return entry.startswith(f"{_NATIVE}{natives}/") and _DEBUG not in entry


def _write_jars(draft: Draft, folder: Path) -> None:
    names, project = draft.names, draft.project
    payload = f"{names.folder}/{PAYLOAD}/"
    libraries = [f"{LIBRARIES}/{name}" for name in draft.libraries.values()]
    write_jar(
        folder / f"{draft.stem}.jar",
        {
            "META-INF/MANIFEST.MF": _write_manifest(f"{names.package}.Main", libraries),
            f"META-INF/maven/{names.group}/{names.artifact}/pom.xml": project / "pom.xml",
            **list_files(project / "classes", ""),
            **list_files(project / PAYLOAD, payload),
        },
        aligned=lambda name: name.startswith(payload),
    )
    write_jar(folder / f"{draft.stem}-sources.jar", list_files(project / "src", ""))


def _write_manifest(main: str, libraries: list[str]) -> bytes:
    """The manifest of a jar that `java -jar` starts; lines are folded at 72 bytes (JAR file specification)."""
    lines = ["Manifest-Version: 1.0", f"Main-Class: {main}", f"Class-Path: {' '.join(libraries)}"]
    folded = ["\r\n ".join([line[:70], *(line[at : at + 69] for at in range(70, len(line), 69))]) for line in lines]
    return ("\r\n".join(folded) + "\r\n\r\n").encode("ascii")
