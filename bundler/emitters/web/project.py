"""The npm package of a bundle: loader, runtime, payload and what is rendered, in one folder."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bundler.emitters.contract import EmitRequest
from bundler.emitters.payload import PAYLOAD, render_config
from bundler.emitters.rendering import Template, load_template, write_project
from bundler.emitters.web.context import Context, make_context
from bundler.emitters.web.demo import describe_demo
from bundler.emitters.web.downloads import list_downloads, list_shares
from bundler.emitters.web.imports import ALL, list_imports
from bundler.emitters.web.licences import LicenceFile, find_licences
from bundler.emitters.web.modules import SEVERAL, STREAM
from bundler.emitters.web.payload import place_assets
from bundler.emitters.web.precompression import precompress
from bundler.emitters.web.profile import WebSettings
from bundler.emitters.web.vendor import fetch_builds
from bundler.emitters.writing import copy_file, write_text
from bundler.model.proof import Download, sum_first_visit

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

TEMPLATE = "web"
LOADER = "loader"
"""The folder of the loader, as the template has it."""

_DEMO_PAGE = "demo.html.j2"
"""It names the other files by their digests, and so is rendered when they are there."""

_README = "README.md.j2"
"""It lists what a first visit downloads, and so is rendered last."""

PER_IMPORT = MappingProxyType(
    {
        "index.js.j2": f"{ALL}/{{stem}}.js",
        "node.js.j2": f"{ALL}/{{stem}}.node.js",
        "variant.d.ts.j2": f"{ALL}/{{stem}}.d.ts",
        "runtime.js.j2": "runtime.{stem}.js",
    }
)
"""The modules of each import but the whole. Those that name files are in the package's folder, where a build tool's
development server finds the files beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What was written."""

    context: Context
    licences: tuple[LicenceFile, ...]
    downloads: tuple[Download, ...]


def write_web_project(request: EmitRequest, folder: Path) -> Project:
    """Write the whole package into `folder`. Raises `BundlerError`."""
    config = render_config(request.config)
    imports = list_imports(request.config)
    runtime, licences = fetch_builds(request, imports[0].builds), find_licences(request)
    assets = place_assets(request, runtime, folder)
    write_text(folder / PAYLOAD / "runtime.json", config)
    for licence in licences:
        copy_file(licence.source, folder / licence.path)
    digest = hashlib.sha256(config.encode("utf-8")).hexdigest()
    context = make_context(request, digest, assets, imports)
    template = load_template(TEMPLATE)
    fields = {**_fields_of(context), "own": context.imports[0]}
    needs = {SEVERAL: context.several, STREAM: context.streams}
    unneeded = frozenset(PurePosixPath(path).name for path, needed in needs.items() if not needed)
    write_project(_without(template, _DEMO_PAGE, _README), fields, {}, folder, unneeded)
    for one in context.imports[1:]:
        per_import = dataclasses.replace(template, static={}, rendered=PER_IMPORT)
        write_project(per_import, {**fields, "own": one}, {"stem": one.stem}, folder)
    write_project(_alone(template, _DEMO_PAGE), {**fields, **_fields_of(describe_demo(folder))}, {}, folder)
    downloads, shares = list_downloads(request, assets, folder), list_shares(request, assets, imports, folder)
    sizes = {"downloads": downloads, "whole": sum_first_visit(downloads), "shares": shares}
    write_project(_alone(template, _README), {**fields, **sizes}, {}, folder)
    if WebSettings.of(request.profile).precompressed:
        precompress(request, folder)
    return Project(context=context, licences=licences, downloads=downloads)


def _fields_of(context: DataclassInstance) -> dict[str, Any]:
    return {field.name: getattr(context, field.name) for field in dataclasses.fields(context)}


def _without(template: Template, *sources: str) -> Template:
    kept = {source: target for source, target in template.rendered.items() if source not in sources}
    return dataclasses.replace(template, rendered=kept)


def _alone(template: Template, source: str) -> Template:
    return dataclasses.replace(template, static={}, rendered={source: template.rendered[source]})
