"""Write the digest of a model into its metadata."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from onnx import ModelProto, StringStringEntryProto

from bundler.model.codec import decode
from bundler.model.digests import digest_file
from bundler.model.stage import Report, StageRequest, StageResult
from bundler.onnxkit.structure import external_names, read_structure
from bundler.stages.stamp_key.spec import Options


def run(request: StageRequest, report: Report) -> StageResult:
    """The same model with one more metadata entry; an existing entry with that key is overridden."""
    source, options = request.input("model"), decode(Options, dict(request.options))
    report(0.0, "hashing")
    structure = read_structure(source)
    names = (source.name, *external_names(structure))
    total = hashlib.sha256()
    for name in names:
        total.update(f"{name}\0{digest_file(source.parent / name)}\n".encode())
    value = total.hexdigest()
    for name in names:
        target = request.output / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.parent / name, target)
    _append(request.output / source.name, options.key, value)
    return StageResult(facts={"key": options.key, "value": value}, entry=source.name)


def _append(path: Path, key: str, value: str) -> None:
    """Append a second message, which parsers merge with the first; the last of two entries with one key counts."""
    addition = ModelProto(metadata_props=[StringStringEntryProto(key=key, value=value)])
    with path.open("ab") as stream:
        stream.write(addition.SerializeToString(deterministic=True))
