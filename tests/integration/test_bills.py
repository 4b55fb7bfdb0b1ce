"""Bills of materials against what ships: every third-party file belongs to one component, and nothing else is listed.

Two readers take each bill: the standard's strict schema with its library's own model of a bill, and the reference
implementation of package URLs. A reader of another project would be a dependency more and, as those are made for bills
of any quality, a check less: they skip what they do not know.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
import tomllib
import uuid
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from cyclonedx.model.bom import Bom
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from bundler.environments.lockfiles import parse_lock
from bundler.reporting import notices
from bundler.reporting.sbom import SBOM_NAME
from tests.integration.conftest import Unproven
from tests.support.command_line import CommandLine
from tests.support.kotlin import fetch_runtime

pytestmark = pytest.mark.timeout(600)

Entry = Mapping[str, Any]
ZIPS = (".whl", ".jar", ".aar", ".pex")
APACHE = Path(notices.__file__).with_name("apache-2.0.txt")
POM = "{http://maven.apache.org/POM/4.0.0}"

RENDERED = re.compile(
    r"""
    (.*/)? ( README\.md | (bundle|package|runtime|manifest)\.json | sbom\.cdx\.json | NOTICES | requirements\.lock )
    | (.*/)? (payload | golden | models | demo | variants) / .*
    | (.*/)? ( model | model-1\.0\.0[-\w]* | pair ) \. ( jar | aar | whl | pex | tgz | pom )   # what bundler has packed
    | repository/.* \. ( pom | sha1 | sha256 )
    | ( .*\.whl/ )? ( model / (__init__\.py | __main__\.py | py\.typed) | model-1\.0\.0\.dist-info/.* )
    | pyproject\.toml | build_backend/storing\.py
    | .*\.pex/ ( PEX-INFO | __main__\.py | __pex__/__init__\.py )
    | (.*\.tgz/package/)? ( golden | index | node | runtime[.\w]* | self-test ) (\.d)? \.[jt]s
    | .*-sources\.jar/bundle/model/.* \.kt
    | .*\.jar/bundle/model/[\w$]+\.class | .*\.jar/META-INF/.*
    | .*\.aar/ ( AndroidManifest\.xml | R\.txt | proguard\.txt | classes\.jar )
    | (bundle/ | example/)? [\w.-]+ \. (kts | properties | pro) | gradle/libs\.versions\.toml
    | .*/AndroidManifest\.xml | .*/ (Model | OnDeviceTest | MainActivity) \.kt
    """,
    re.VERBOSE,
)
"""Files that bundler makes for each model; the loader, which is the same for all, is listed in the bill."""

MODEL = re.compile(r"(^|payload/)models/")
LICENCE = re.compile(
    r"/[^/]*\.dist-info/(licenses/)?(LICEN|COPYING|NOTICE)[^/]*$|(^|/)vendor/(LICENSE|ThirdPartyNotices.txt)$"
)
WITHOUT_TEXT = {"ansicolors"}
"""Packages that carry no text of a licence which names its holder."""

FORMATS = {
    "dir": "linux-x64",
    "wheel": "linux-x64",
    "pex": "linux-x64",
    "web": "web-webgpu",
    "tgz": "web-wasm",
    "jar": "linux-x64",
    "gradle": "android-arm64",
    "aar": "android-arm64",
    "files": "snapdragon-8g3",
    "ortpackage": "linux-x64",
}
"""Each with a target; a folder is a Python package or one for the web."""


def unfold(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """A file, and what is in it where it is an archive, each as if that were a folder."""
    yield name, content
    for inner, data in read_archive(name, content):
        yield from unfold(f"{name}/{inner}", data)


def read_archive(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    if name.endswith(ZIPS):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield from ((entry, archive.read(entry)) for entry in archive.namelist() if not entry.endswith("/"))
    elif name.endswith(".tgz"):
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            yield from ((entry.name, reader.read()) for entry in archive if (reader := archive.extractfile(entry)))


def list_content(bundle: Path) -> dict[str, bytes]:
    files = (path for path in sorted(bundle.rglob("*")) if path.is_file())
    return {
        name: content
        for path in files
        for name, content in unfold(path.relative_to(bundle).as_posix(), path.read_bytes())
    }


def normalise(entry: Entry) -> str:
    """Its name as package indices compare it."""
    return str(entry["name"]).lower().replace("_", "-")


def read_property(entry: Entry, name: str) -> str | None:
    found = [item["value"] for item in entry.get("properties", ()) if item["name"] == f"bundler:{name}"]
    return found[0] if found else None


def list_places(entry: Entry) -> list[str]:
    """Where a component is in the bundle: its file or folder, or each of its files."""
    own = read_property(entry, "file")
    inside = [part["name"] for part in entry.get("components", ()) if part["type"] == "file"]
    return [*([own] if own else []), *inside]


def flatten(entries: Sequence[Entry]) -> Iterator[Entry]:
    for entry in entries:
        yield entry
        yield from flatten(entry.get("components", ()))


def is_in(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def check_readers(text: str) -> None:
    """Both readers take it, and find in it what is there."""
    assert JsonStrictValidator(SchemaVersion.V1_7).validate_str(text) is None
    bill = json.loads(text)
    read = Bom.from_json(bill)
    assert read.validate()
    found = {component.bom_ref.value for component in read._get_all_components()}
    assert found == {entry["bom-ref"] for entry in (bill["metadata"]["component"], *flatten(bill["components"]))}
    for entry in flatten(bill["components"]):
        if "purl" in entry:
            url = PackageURL.from_string(entry["purl"])
            assert (url.to_string(), url.version) == (entry["purl"], entry["version"])
            assert url.name == normalise(entry)


def check_content(contained: Sequence[Entry], content: Mapping[str, bytes]) -> None:
    """What is listed is there with its digest, and what is there is listed once."""
    models = [entry for entry in contained if entry["type"] == "machine-learning-model"]
    listed = {item["value"] for entry in models for item in entry["properties"] if ":variant:" in item["name"]}
    assert listed == {f"sha256:{sha256(data)}" for path, data in content.items() if MODEL.search(path)}
    assert len(models) == len(json.loads(content["bundle.json"])["components"])
    for entry in flatten([entry for entry in contained if entry not in models]):
        digest = entry["hashes"][0]["content"] if "hashes" in entry else None
        if entry["type"] == "file":
            assert sha256(content[entry["name"]]) == digest
            continue
        places = list_places(entry)
        assert places, entry["name"]
        for place in places:
            assert any(is_in(path, place) for path in content), place
        if digest and places == [read_property(entry, "file")]:
            assert sha256(content[places[0]]) == digest
    owners = [(entry["name"], place) for entry in contained for place in list_places(entry)]
    for path in content:
        claimed = [name for name, place in owners if is_in(path, place)]
        assert len(claimed) == 1 or (not claimed and RENDERED.fullmatch(path)), (path, claimed)


def check_notices(text: str, bill: Entry, content: Mapping[str, bytes]) -> None:
    """Each component by its name, version and licence, and each text of a licence that a vendored package carries."""
    software = [entry for entry in flatten(bill["components"]) if entry["type"] == "library"]
    named, _, required = text.partition("\n====")[0].partition("does not contain them:")
    for entry in software:
        said = f"\n  {entry['name']} {entry['version']}: {name_licence(entry)}"
        assert said in (required if "isExternal" in entry else named), said
    if any(name_licence(entry) == "Apache-2.0" for entry in software if "isExternal" not in entry):
        assert tidy_lines(APACHE.read_text("utf-8")) in tidy_lines(text)
    wordless = [part for part in re.split(r"\n\n={78}\n", text) if "contains no licence text" in part]
    assert {line.split()[0] for part in wordless for line in part.partition("\n=")[0].splitlines()} <= WITHOUT_TEXT
    tidy = tidy_lines(text)
    for path, data in content.items():
        if LICENCE.search(path):
            assert tidy_lines(data.decode("utf-8", "replace")) in tidy, path


def tidy_lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def name_licence(entry: Entry) -> str:
    (licence,) = entry.get("licenses", [{"expression": "licence not stated"}])
    return str(licence.get("expression") or licence["license"].get("id") or licence["license"]["name"])


def list_declared(bundle: Path) -> set[tuple[str, str]]:
    """Name and version of each package that the bundle's own files name for a build tool to fetch."""
    for pom in bundle.glob("repository/**/*.pom"):
        found = ET.parse(pom).iter(f"{POM}dependency")  # noqa: S314 (written by bundler)
        return {(item.findtext(f"{POM}artifactId", ""), item.findtext(f"{POM}version", "")) for item in found}
    catalogue = tomllib.loads((bundle / "gradle" / "libs.versions.toml").read_text("utf-8"))
    versions = catalogue["versions"]
    return {("kotlin-stdlib", versions["kotlin"]), ("kotlinx-coroutines-core-jvm", versions["coroutines"])} | {
        (item["name"], item["version"]) for item in catalogue["libraries"].values() if isinstance(item["version"], str)
    }


def check_required(bundle: Path, form: str, required: Sequence[Entry]) -> None:
    """What others provide has no place here, and is what the bundle's own files name."""
    assert all(read_property(entry, "provided-by") and not list_places(entry) for entry in required)
    names = {(normalise(entry), entry["version"]) for entry in required}
    if form in {"files", "ortpackage"}:
        readme = (bundle / "README.md").read_text("utf-8").replace("\\", "")
        assert names
        assert all(f"{name} | {version} |" in readme for name, version in names)
    elif form in {"gradle", "aar"}:
        names.remove(("annotations", "23.0.0"))  # the coroutines require it
        assert names == list_declared(bundle)
    else:
        assert bool(names) == (form == "wheel")


def check_lock(text: str, bill: Entry) -> None:
    """It pins every wheel that the bundle contains or requires."""
    listed = (entry for entry in bill["components"] if "file_name=" in entry.get("purl", ""))
    assert {(pin.name, pin.version, digest) for pin in parse_lock("lock", text).pins for digest in pin.hashes} == {
        (normalise(entry), entry["version"], entry["hashes"][0]["content"]) for entry in listed
    }


@pytest.mark.parametrize("form", FORMATS)
def test_the_bill_lists_what_ships(unproven_of: Unproven, bundler: CommandLine, form: str) -> None:
    if form in {"jar", "aar"}:
        fetch_runtime(bundler.cache)
    names = ("first", "second") if form == "ortpackage" else ()
    bundle = unproven_of(FORMATS[form], "dir" if form == "web" else form, *names)
    text, content = (bundle / SBOM_NAME).read_text("utf-8"), list_content(bundle)
    check_readers(text)
    bill = json.loads(text)
    assert uuid.UUID(bill["serialNumber"].removeprefix("urn:uuid:")).version == 5
    assert "timestamp" not in bill["metadata"]
    check_content([entry for entry in bill["components"] if "isExternal" not in entry], content)
    check_required(bundle, form, [entry for entry in bill["components"] if "isExternal" in entry])
    check_notices(content[notices.NOTICES_NAME].decode("utf-8"), bill, content)
    if "requirements.lock" in content:
        check_lock(content["requirements.lock"].decode("utf-8"), bill)
