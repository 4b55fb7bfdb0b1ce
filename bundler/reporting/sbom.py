"""The software bill of materials: deterministic CycloneDX, as the standard's own library writes it."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from bundler import __version__
from bundler.model.artifacts import FileRecord
from bundler.model.digests import digest_json
from bundler.model.manifest import ModelRecord, RuntimeRecord
from bundler.model.proof import Dependency
from bundler.model.runtime import RuntimeComponent, RuntimeConfig

SBOM_NAME = "sbom.cdx.json"
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "sbom.bundler")
"""Namespace of the serial numbers, which are UUIDs of version 5: the same bundle always has the same number."""
_PLAIN_EXPRESSION = re.compile(r"(?!.*(licenseref|exception|ecos))[a-z0-9.() -]{1,1000}", re.IGNORECASE)
"""Licences on which `packaging` and the standard's library agree, whether identifier, expression or neither."""
_NAME = re.compile(r"(?!.*\b(and|or|with)\b)[a-z0-9.-]+( [a-z0-9.-]+)+", re.IGNORECASE)
"""Words without an operator (`MIT License`): no identifier has a space."""

Entry = Mapping[str, Any]
"""A JSON object of the standard."""


def render_sbom(
    *,
    name: str,
    version: str,
    config: RuntimeConfig,
    models: Mapping[str, ModelRecord],
    runtime: RuntimeRecord,
    dependencies: Sequence[Dependency],
) -> str:
    """CycloneDX 1.7 JSON for the bundle `name` with its dependencies and its `models`, by component.

    Equal arguments give equal text: the serial number is derived from the content, and there is no timestamp. The text
    is that of `cyclonedx-python-lib`, which takes longer to import than most steps of a build take.
    """
    vendored = _unique(dependencies)
    parts = [*map(_vendored_entry, vendored), *_list_models(models, config)]
    needed = sorted(part["bom-ref"] for part in parts)
    tool = {"bom-ref": "tool:bundler", "name": "bundler", "type": "application", "version": __version__}
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.7.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.7",
        "version": 1,
        "serialNumber": _serial_number(name, version, config, vendored).urn,
        "metadata": {"component": _bundle_entry(name, version, runtime), "tools": {"components": [tool]}},
        "components": sorted(parts, key=_rank),
        "dependencies": sorted(
            [{"ref": "bundle", "dependsOn": needed}, *({"ref": reference} for reference in needed)],
            key=lambda entry: str(entry["ref"]),
        ),
    }
    return json.dumps(bill, sort_keys=True, indent=2) + "\n"


def preload() -> None:
    """Import early, while the build waits for something else, what nearly every bill needs."""
    import packageurl  # noqa: PLC0415 - only a build that writes a bundle needs it
    from packaging import licenses  # noqa: PLC0415 - as above

    del packageurl, licenses


def _serial_number(name: str, version: str, config: RuntimeConfig, dependencies: Sequence[Dependency]) -> uuid.UUID:
    content = digest_json([name, version, __version__, config, [digest_json(known) for known in dependencies]])
    return uuid.uuid5(_NAMESPACE, content)


def _unique(dependencies: Sequence[Dependency]) -> list[Dependency]:
    """Each dependency once, sorted."""
    known = {_reference(dependency): dependency for dependency in dependencies}
    return [known[reference] for reference in sorted(known)]


def _reference(dependency: Dependency) -> str:
    return f"{dependency.purl}#{dependency.sha256 or dependency.file or ''}"


def _rank(entry: Entry) -> tuple[str, ...]:
    """The library's order of components."""
    return entry["type"], entry["name"], entry.get("version", ""), entry["bom-ref"]


def _bundle_entry(name: str, version: str, runtime: RuntimeRecord) -> Entry:
    return {
        "bom-ref": "bundle",
        "type": "application",
        "name": name,
        "version": version,
        "properties": [_property("runtime", f"{runtime.package}=={runtime.version}")],
    }


def _property(name: str, value: str) -> Entry:
    return {"name": f"bundler:{name}", "value": value}


def _hashes(digest: str) -> list[Entry]:
    return [{"alg": "SHA-256", "content": digest}]


def _list_models(models: Mapping[str, ModelRecord], config: RuntimeConfig) -> list[Entry]:
    """The model of each component; only where there are several do its references bear the component's name."""
    return [_model_entry(models[component.name], component, config) for component in config.components]


def _model_entry(model: ModelRecord, component: RuntimeComponent, config: RuntimeConfig) -> Entry:
    files = {
        (f"variant:{config.label(component.name, variant.name)}:{record.path}", f"sha256:{record.sha256}")
        for variant in component.variants
        for record in variant.files
    }
    return {
        "bom-ref": "model" if config.sole else f"model:{component.name}",
        "type": "machine-learning-model",
        "name": model.name,
        "hashes": _hashes(model.digest),
        "properties": [_property(*pair) for pair in sorted({("bytes", str(model.size)), *files})],
    }


def _vendored_entry(dependency: Dependency) -> Entry:
    from packageurl import PackageURL  # noqa: PLC0415 - only a build that writes a bundle needs it

    entry: dict[str, Any] = {
        "bom-ref": _reference(dependency),
        "type": "library",
        "name": dependency.name,
        "version": dependency.version,
    }
    if dependency.purl:
        entry["purl"] = PackageURL.from_string(dependency.purl).to_string()
    if dependency.sha256:
        entry["hashes"] = _hashes(dependency.sha256)
    if dependency.licence.strip():
        entry["licenses"] = [_licence(dependency.licence)]
    if dependency.file:
        entry["properties"] = [_property("file", dependency.file)]
    if dependency.provided_by:
        entry["isExternal"] = True
        entry["properties"] = [_property("provided-by", dependency.provided_by)]
    inside = [*map(_vendored_entry, _unique(dependency.parts)), *map(_file_entry, dependency.files)]
    if inside:
        entry["components"] = sorted(inside, key=_rank)
    return entry


def _file_entry(record: FileRecord) -> Entry:
    reference = f"file:{record.path}"
    return {"bom-ref": reference, "type": "file", "name": record.path, "hashes": _hashes(record.sha256)}


def _licence(text: str) -> Entry:
    """The licence in `text`: an SPDX identifier, an SPDX expression, or a plain name."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression  # noqa: PLC0415 - as above

    if not _PLAIN_EXPRESSION.fullmatch(text):
        return _look_up_licence(text)
    try:
        known = canonicalize_license_expression(text)
    except InvalidLicenseExpression:
        return {"license": {"name": text}} if _NAME.fullmatch(text) else _look_up_licence(text)
    is_identifier = known.lower() == text.lower() and not re.search("[() ]", known)
    return {"license": {"id": known}} if is_identifier else {"expression": text}


def _look_up_licence(text: str) -> Entry:
    """The same, by the standard's library."""
    from cyclonedx.spdx import fixup_id, is_expression  # noqa: PLC0415 - 50 ms, for unusual licences only

    known = fixup_id(text)
    if known is not None:
        return {"license": {"id": known}}
    return {"expression": text} if is_expression(text) else {"license": {"name": text}}
