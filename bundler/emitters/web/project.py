"""The npm package of a bundle: loader, runtime, payload and what is rendered, in one folder."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bundler.emitters.contract import EmitRequest
from bundler.emitters.payload import PAYLOAD, render_config
from bundler.emitters.rendering import Template, load_template, write_project
from bundler.emitters.web.context import Context, make_context
from bundler.emitters.web.downloads import list_downloads
from bundler.emitters.web.licences import LicenceFile, find_licences
from bundler.emitters.web.payload import place_assets
from bundler.emitters.web.precompression import precompress
from bundler.emitters.web.vendor import choose_builds, fetch_builds
from bundler.emitters.writing import copy_file, write_text
from bundler.model.proof import Download

TEMPLATE = "web"
README = "README.md.j2"
"""It tells what a visit downloads, and so is written when all that a visit downloads is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What was written."""

    context: Context
    licences: tuple[LicenceFile, ...]
    downloads: tuple[Download, ...]


def write_web_project(request: EmitRequest, folder: Path) -> Project:
    """Write the whole package into `folder`. Raises `BundlerError`."""
    config = render_config(request.config)
    builds = choose_builds(request.config)
    runtime, licences = fetch_builds(request, builds), find_licences(request)
    assets = place_assets(request, runtime, folder)
    write_text(folder / PAYLOAD / "runtime.json", config)
    for licence in licences:
        copy_file(licence.source, folder / licence.path)
    digest = hashlib.sha256(config.encode("utf-8")).hexdigest()
    context = make_context(request, config, digest, assets, builds)
    template = load_template(TEMPLATE)
    _render(_without_readme(template), folder, context)
    downloads = list_downloads(request, assets, folder)
    _render(_readme_alone(template), folder, context, downloads=downloads)
    if request.profile.web.precompressed:
        precompress(folder, request.environments.root)
    return Project(context=context, licences=licences, downloads=downloads)


def _render(template: Template, folder: Path, context: Context, **more: Any) -> None:
    fields = {field.name: getattr(context, field.name) for field in dataclasses.fields(context)}
    write_project(template, {**fields, **more}, {}, folder)


def _without_readme(template: Template) -> Template:
    kept = {source: target for source, target in template.rendered.items() if source != README}
    return dataclasses.replace(template, rendered=kept)


def _readme_alone(template: Template) -> Template:
    return dataclasses.replace(template, static={}, rendered={README: template.rendered[README]})
