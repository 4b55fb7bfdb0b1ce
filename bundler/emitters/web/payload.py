"""All that the loader may fetch, stored in the bundle: the runtime's builds, the models and the golden sets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from bundler.emitters.contract import EmitRequest
from bundler.emitters.payload import PAYLOAD, find_variant_files
from bundler.emitters.web.npm_store import PackageFile
from bundler.emitters.web.parts import Asset, place_asset
from bundler.emitters.web.profile import WebSettings
from bundler.emitters.web.vendor import VENDOR
from bundler.model.artifacts import FileRecord, record_folder


def place_assets(request: EmitRequest, runtime: Iterable[PackageFile], folder: Path) -> tuple[Asset, ...]:
    """Store every file once, whatever shares it. Raises `StageError`, or `DefectError` when a variant has no model."""
    sources = {record.path: (record, source) for record, source in _list_files(request, runtime)}
    limit = WebSettings.of(request.profile).part_mb
    return tuple(place_asset(source, folder, record, limit) for record, source in sources.values())


def _list_files(request: EmitRequest, runtime: Iterable[PackageFile]) -> Iterable[tuple[FileRecord, Path]]:
    for file in runtime:
        path = f"{VENDOR}/{PurePosixPath(file.path).name}"
        yield FileRecord(path=path, size=file.size, sha256=file.sha256), file.source
    for component in request.config.components:
        built = request.components[component.name]
        for variant in component.variants:
            for record, source in find_variant_files(built, variant):
                yield replace(record, path=f"{PAYLOAD}/{record.path}"), source
        for record in record_folder(built.golden).files:
            yield replace(record, path=f"{PAYLOAD}/{component.golden}/{record.path}"), built.golden / record.path
