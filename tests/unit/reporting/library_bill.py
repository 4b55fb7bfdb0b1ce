"""The bill of materials by the standard's own library: what bundler's own text must equal."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component as Entry
from cyclonedx.model.component import ComponentType
from cyclonedx.model.license import License
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot7
from packageurl import PackageURL

from bundler import __version__
from bundler.model.artifacts import FileRecord
from bundler.model.manifest import ModelRecord, RuntimeRecord
from bundler.model.proof import Dependency
from bundler.model.runtime import RuntimeComponent, RuntimeConfig


def render_by_library(
    *,
    serial_number: uuid.UUID,
    name: str,
    version: str,
    config: RuntimeConfig,
    models: Mapping[str, ModelRecord],
    runtime: RuntimeRecord,
    dependencies: Sequence[Dependency],
) -> str:
    vendored = {reference_of(known): known for known in dependencies}
    bom = Bom(serial_number=serial_number)
    root = _bundle_entry(name, version, runtime)
    own = [_model_entry(models, component, config) for component in config.components]
    parts = [*own, *(_vendored_entry(component) for component in vendored.values())]
    _fill(bom, root, parts)
    data: dict[str, Any] = json.loads(JsonV1Dot7(bom).output_as_string())
    data["metadata"].pop("timestamp", None)
    return json.dumps(data, sort_keys=True, indent=2) + "\n"


def reference_of(component: Dependency) -> str:
    return f"{component.purl}#{component.sha256 or component.file or ''}"


def _fill(bom: Bom, root: Entry, parts: Sequence[Entry]) -> None:
    tool = Entry(name="bundler", version=__version__, type=ComponentType.APPLICATION, bom_ref="tool:bundler")
    bom.metadata.tools = ToolRepository(components=[tool])
    bom.metadata.component = root
    for part in parts:
        bom.components.add(part)
    bom.register_dependency(root, parts)


def _bundle_entry(name: str, version: str, runtime: RuntimeRecord) -> Entry:
    return Entry(
        name=name,
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref="bundle",
        properties=[Property(name="bundler:runtime", value=f"{runtime.package}=={runtime.version}")],
    )


def _model_entry(models: Mapping[str, ModelRecord], component: RuntimeComponent, config: RuntimeConfig) -> Entry:
    model = models[component.name]
    variants = [
        Property(
            name=f"bundler:variant:{config.label(component.name, variant.name)}:{record.path}",
            value=f"sha256:{record.sha256}",
        )
        for variant in component.variants
        for record in variant.files
    ]
    return Entry(
        name=model.name,
        type=ComponentType.MACHINE_LEARNING_MODEL,
        bom_ref="model" if config.sole else f"model:{component.name}",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=model.digest)],
        properties=[Property(name="bundler:bytes", value=str(model.size)), *variants],
    )


def _vendored_entry(component: Dependency) -> Entry:
    digest = component.sha256
    return Entry(
        name=component.name,
        version=component.version,
        type=ComponentType.LIBRARY,
        bom_ref=reference_of(component),
        purl=PackageURL.from_string(component.purl) if component.purl else None,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)] if digest else [],
        licenses=_licences(component.licence),
        properties=_properties(component),
        is_external=True if component.provided_by else None,
        components=[
            *(_vendored_entry(part) for part in {reference_of(part): part for part in component.parts}.values()),
            *map(_file_entry, component.files),
        ],
    )


def _properties(component: Dependency) -> list[Property]:
    named = {"file": component.file, "provided-by": component.provided_by}
    return [Property(name=f"bundler:{name}", value=value) for name, value in named.items() if value]


def _file_entry(record: FileRecord) -> Entry:
    return Entry(
        name=record.path,
        type=ComponentType.FILE,
        bom_ref=f"file:{record.path}",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=record.sha256)],
    )


def _licences(text: str) -> list[License]:
    return [LicenseFactory().make_from_string(text)] if text.strip() else []
