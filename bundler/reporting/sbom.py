"""The software bill of materials: deterministic CycloneDX, written by the standard's own library."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bundler import __version__
from bundler.model.digests import digest_json
from bundler.model.manifest import ModelRecord, RuntimeRecord
from bundler.model.proof import Component
from bundler.model.runtime import RuntimeConfig

if TYPE_CHECKING:
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component as Entry
    from cyclonedx.model.license import License

SBOM_NAME = "sbom.cdx.json"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "sbom.bundler")
"""Namespace of the serial numbers, which are UUIDs of version 5: the same bundle always has the same number."""
_IMPORTING = threading.Lock()
"""The library registers its classes in one table while it is imported: two threads must not do that at once."""


def render_sbom(
    *,
    name: str,
    version: str,
    config: RuntimeConfig,
    model: ModelRecord,
    runtime: RuntimeRecord,
    components: Sequence[Component],
) -> str:
    """CycloneDX 1.7 JSON for the bundle `name` with its third-party components.

    Equal arguments give equal text: the serial number is derived from the content, and there is no timestamp.
    """
    # The library takes a tenth of a second to import, and only a build that writes a bundle needs it.
    preload()
    from cyclonedx.model.bom import Bom  # noqa: PLC0415
    from cyclonedx.output.json import JsonV1Dot7  # noqa: PLC0415

    vendored = _unique(components)
    bom = Bom(serial_number=_serial_number(name, version, config, vendored))
    root = _bundle_entry(name, version, runtime)
    parts = [_model_entry(model, config), *(_vendored_entry(component) for component in vendored)]
    _fill(bom, root, parts)
    data: dict[str, Any] = json.loads(JsonV1Dot7(bom).output_as_string())
    data["metadata"].pop("timestamp", None)
    return json.dumps(data, sort_keys=True, indent=2) + "\n"


def preload() -> None:
    """Import the library early, while the build waits for something else."""
    with _IMPORTING:
        from cyclonedx.contrib.license.factories import LicenseFactory  # noqa: PLC0415
        from cyclonedx.output.json import JsonV1Dot7  # noqa: PLC0415

    del LicenseFactory, JsonV1Dot7


def _serial_number(name: str, version: str, config: RuntimeConfig, components: Sequence[Component]) -> uuid.UUID:
    content = digest_json([name, version, __version__, config, [digest_json(component) for component in components]])
    return uuid.uuid5(_NAMESPACE, content)


def _unique(components: Sequence[Component]) -> list[Component]:
    """Each component once, sorted."""
    known = {_reference(component): component for component in components}
    return [known[reference] for reference in sorted(known)]


def _reference(component: Component) -> str:
    return f"{component.purl}#{component.sha256 or component.file or ''}"


def _fill(bom: Bom, root: Entry, parts: Sequence[Entry]) -> None:
    from cyclonedx.model.component import Component as Entry  # noqa: PLC0415
    from cyclonedx.model.component import ComponentType  # noqa: PLC0415
    from cyclonedx.model.tool import ToolRepository  # noqa: PLC0415

    tool = Entry(name="bundler", version=__version__, type=ComponentType.APPLICATION, bom_ref="tool:bundler")
    bom.metadata.tools = ToolRepository(components=[tool])
    bom.metadata.component = root
    for part in parts:
        bom.components.add(part)
    bom.register_dependency(root, parts)


def _bundle_entry(name: str, version: str, runtime: RuntimeRecord) -> Entry:
    from cyclonedx.model import Property  # noqa: PLC0415
    from cyclonedx.model.component import Component as Entry  # noqa: PLC0415
    from cyclonedx.model.component import ComponentType  # noqa: PLC0415

    return Entry(
        name=name,
        version=version,
        type=ComponentType.APPLICATION,
        bom_ref="bundle",
        properties=[Property(name="bundler:runtime", value=f"{runtime.package}=={runtime.version}")],
    )


def _model_entry(model: ModelRecord, config: RuntimeConfig) -> Entry:
    from cyclonedx.model import HashAlgorithm, HashType, Property  # noqa: PLC0415
    from cyclonedx.model.component import Component as Entry  # noqa: PLC0415
    from cyclonedx.model.component import ComponentType  # noqa: PLC0415

    variants = [
        Property(name=f"bundler:variant:{variant.name}:{record.path}", value=f"sha256:{record.sha256}")
        for variant in config.variants
        for record in variant.files
    ]
    return Entry(
        name=model.name,
        type=ComponentType.MACHINE_LEARNING_MODEL,
        bom_ref="model",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=model.digest)],
        properties=[Property(name="bundler:bytes", value=str(model.size)), *variants],
    )


def _vendored_entry(component: Component) -> Entry:
    from cyclonedx.model import HashAlgorithm, HashType, Property  # noqa: PLC0415
    from cyclonedx.model.component import Component as Entry  # noqa: PLC0415
    from cyclonedx.model.component import ComponentType  # noqa: PLC0415
    from packageurl import PackageURL  # noqa: PLC0415

    digest = component.sha256
    return Entry(
        name=component.name,
        version=component.version,
        type=ComponentType.LIBRARY,
        bom_ref=_reference(component),
        purl=PackageURL.from_string(component.purl) if component.purl else None,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)] if digest else [],
        licenses=_licences(component.licence),
        properties=[Property(name="bundler:file", value=component.file)] if component.file else [],
    )


def _licences(text: str) -> list[License]:
    """The licence in `text`: an SPDX identifier, an SPDX expression, or a plain name."""
    from cyclonedx.contrib.license.factories import LicenseFactory  # noqa: PLC0415

    return [LicenseFactory().make_from_string(text)] if text.strip() else []
