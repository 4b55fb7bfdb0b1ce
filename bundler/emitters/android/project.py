"""The Gradle project of a bundle: the module with its assets, and an app that shows it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

from bundler.emitters.android.context import make_fields, name_assets
from bundler.emitters.components import describe_loader, describe_required
from bundler.emitters.contract import EmitRequest
from bundler.emitters.jvm.artifacts import (
    ANNOTATIONS,
    ANNOTATIONS_VERSION,
    COROUTINES,
    COROUTINES_VERSION,
    KOTLIN_VERSION,
    STDLIB,
)
from bundler.emitters.jvm.names import choose_names
from bundler.emitters.jvm.preparation import ANDROID, list_parts
from bundler.emitters.jvm.sources import write_sources
from bundler.emitters.neutral.packages import describe_ingredients, reports_usage
from bundler.emitters.payload import CONFIG_NAME, copy_payload, render_config
from bundler.emitters.rendering import load_template, write_project
from bundler.emitters.writing import write_text
from bundler.model.proof import Dependency, Emitted

TEMPLATE: Final = "android"
MODULE: Final = "bundle"
SOURCES: Final = f"{MODULE}/src/main/kotlin"
_REPOSITORIES: Final = "Maven repositories"
ASSETS: Final = f"{MODULE}/src/main/assets"


def make_project_fields(request: EmitRequest) -> dict[str, Any]:
    """What the templates see, with the digest of the `runtime.json` that is written. Raises `UsageError`."""
    return make_fields(request, hashlib.sha256(render_config(request.config).encode("utf-8")).hexdigest())


def write_gradle(request: EmitRequest, folder: Path) -> Emitted:
    """Write the project into the empty `folder`. Raises `BundlerError`."""
    names, config = choose_names(request.config.name, request.package_name), render_config(request.config)
    fields = make_project_fields(request)
    sources, assets = f"{SOURCES}/{names.folder}", f"{ASSETS}/{name_assets(request)}"
    places = {"sources": sources, "folder": names.folder, "type": fields["type"]}
    write_project(load_template(TEMPLATE), fields, places, folder)
    write_sources(("core", "android", *list_parts(request.config, ANDROID)), names.loader, folder / sources / "loader")
    write_text(folder / assets / CONFIG_NAME, config)
    copy_payload(request, folder / assets)
    notes = ["Gradle fetches the runtime from Maven repositories: it is not in the bundle"]
    if reports_usage(request.profile):
        notes.append("the runtime may report usage; the loader turns that off before its library is loaded")
    return Emitted(
        payload=assets,
        package=names.package,
        dependencies=(*describe_requirements(request), describe_loader(f"{sources}/loader")),
        notes=tuple(notes),
    )


def describe_requirements(request: EmitRequest) -> tuple[Dependency, ...]:
    """What a build of an app fetches for the module, as components: it contains none of it."""
    kotlin = ((STDLIB, KOTLIN_VERSION), (COROUTINES, COROUTINES_VERSION), (ANNOTATIONS, ANNOTATIONS_VERSION))
    return (
        *describe_ingredients(request.profile, _REPOSITORIES),
        *(describe_required(*artifact, "maven", _REPOSITORIES, licence="Apache-2.0") for artifact in kotlin),
    )
