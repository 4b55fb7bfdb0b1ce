"""An archive for Android (AAR) with the compiled module, in a Maven repository of its own."""

from __future__ import annotations

import functools
import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bundler.emitters.android.framework import FRAMEWORK, FRAMEWORK_LOCK
from bundler.emitters.android.loader_classes import choose_runtime
from bundler.emitters.android.project import (
    ASSETS,
    MODULE,
    SOURCES,
    describe_requirements,
    make_project_fields,
    write_gradle,
)
from bundler.emitters.components import describe_loader
from bundler.emitters.contract import EmitRequest
from bundler.emitters.jvm.archives import list_files, write_jar
from bundler.emitters.jvm.artifacts import list_runtime, name_runtime_lock
from bundler.emitters.jvm.compiling import Compilation, compile_kotlin
from bundler.emitters.jvm.maven import fetch_artifacts
from bundler.emitters.jvm.names import choose_names, make_version
from bundler.emitters.rendering import load_template, write_project
from bundler.emitters.writing import copy_file, write_text
from bundler.model.proof import Emitted

TEMPLATE: Final = "android_archive"
REPOSITORY: Final = "repository"
"""The folder that is a Maven repository."""

CLASSES: Final = "classes.jar"
"""Where an archive has its classes, and below which folder its assets (documentation of Android Studio, "Anatomy of an
AAR file").
"""

ENTRIES: Final = "assets/"
_CHECKSUMS: Final = ("sha1", "sha256")
"""Maven compares the first, which is no proof against forgery; the second is for people."""


def write_archive(request: EmitRequest, folder: Path) -> Emitted:
    """Write the repository with the archive, its POM and its sources. Raises `BundlerError`."""
    names, version = choose_names(request.config.name, request.package_name), make_version(request.version)
    project = folder / ".project"
    emitted = write_gradle(request, project)
    fields = {**make_project_fields(request), "repository": REPOSITORY}
    write_project(load_template(TEMPLATE), fields, {}, project / TEMPLATE)
    classes = project / CLASSES
    _compile(request, names.artifact, project, classes)
    place = folder / REPOSITORY / names.group.replace(".", "/") / names.artifact / version
    place.mkdir(parents=True)
    stem = place / f"{names.artifact}-{version}"
    _write_aar(project, classes, stem.with_name(f"{stem.name}.aar"))
    write_jar(stem.with_name(f"{stem.name}-sources.jar"), list_files(project / SOURCES, ""), aligned=_is_aligned)
    copy_file(project / TEMPLATE / "pom.xml", stem.with_name(f"{stem.name}.pom"))
    _write_checksums(place)
    copy_file(project / TEMPLATE / "README.md", folder / "README.md")
    shutil.rmtree(project)
    inside = f"{stem.relative_to(folder).as_posix()}.aar/{CLASSES}/{names.folder}/loader"
    dependencies = (*describe_requirements(request), describe_loader(inside))
    return Emitted(payload=None, package=emitted.package, dependencies=dependencies, notes=emitted.notes)


def _compile(request: EmitRequest, module: str, project: Path, target: Path) -> None:
    """Against the framework, and the runtime's classes of the version for Java that is nearest: those are the same."""
    environments, reporter = request.environments, request.reporter
    version = choose_runtime(request.profile.runtime.version)
    locks = (
        environments.lock_for(name_runtime_lock(version), list_runtime(version), reporter),
        environments.lock_for(FRAMEWORK_LOCK, FRAMEWORK, reporter),
    )
    libraries = [path for lock in locks for path in fetch_artifacts(lock, environments, reporter).values()]
    work = Compilation(sources=sorted((project / SOURCES).rglob("*.kt")), libraries=libraries, module=module)
    compile_kotlin(work, project / "classes", environments, reporter)
    write_jar(target, list_files(project / "classes", ""), aligned=_is_aligned)


def _write_aar(project: Path, classes: Path, target: Path) -> None:
    files: Mapping[str, Path | bytes] = {
        "AndroidManifest.xml": project / TEMPLATE / "AndroidManifest.xml",
        CLASSES: classes,
        "R.txt": b"",
        "proguard.txt": project / MODULE / "consumer-rules.pro",
        **list_files(project / ASSETS, ENTRIES),
    }
    write_jar(target, files, aligned=_is_aligned)


def _is_aligned(name: str) -> bool:
    """Nothing is mapped from here: the build of an app unpacks it."""
    del name
    return False


def _write_checksums(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        for algorithm in _CHECKSUMS:
            with path.open("rb") as file:
                start = functools.partial(hashlib.new, algorithm, usedforsecurity=False)
                digest = hashlib.file_digest(file, start).hexdigest()
            write_text(path.with_name(f"{path.name}.{algorithm}"), digest)
