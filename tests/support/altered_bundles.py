"""Bundles that somebody altered on purpose, with the digests that their manifests list."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

from bundler.emitters.jvm.archives import write_jar


def renew_digest(bundle: Path, path: Path) -> None:
    """Make the manifest list the file as it is now, and the entries of an archive."""
    manifest, name = bundle / "bundle.json", path.relative_to(bundle).as_posix()
    data = json.loads(manifest.read_text("utf-8"))
    for record in data["files"]:
        if record["path"] == name:
            content = path.read_bytes()
            record |= {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    if name in data.get("archives", {}):
        with zipfile.ZipFile(path) as archive:
            data["archives"][name] = {entry.filename: entry.file_size for entry in archive.infolist()}
    manifest.write_text(json.dumps(data), "utf-8")


def replace_entries(archive: Path, entries: Mapping[str, bytes]) -> None:
    """The same archive, with the content of these entries exchanged or added."""
    with zipfile.ZipFile(archive) as opened:
        content = {name: opened.read(name) for name in opened.namelist()}
    write_jar(archive, {**content, **entries}, aligned=lambda _: False)
