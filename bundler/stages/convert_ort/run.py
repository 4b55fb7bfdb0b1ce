"""Write a model in ORT format, without optimisation, in canonical form. A model that cannot be converted stays ONNX."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from bundler.model.errors import StageError
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.sessions import save_as_ort
from bundler.onnxkit.structure import external_names, read_structure
from bundler.stages.convert_ort.canonical_ort import canonicalize_ort
from bundler.support.text import format_bytes

ENTRY = "model.ort"
LIMIT: Final = 2**31 - 1
"""Limit of a FlatBuffers file in bytes, with its 32-bit signed offsets."""
_GROWTH: Final = 1.5
_MUCH: Final = 1_000_000


def run(request: StageRequest, report: Report) -> StageResult:
    """`model.ort`, or nothing and a note when the model stays in ONNX format."""
    source = request.input("model")
    data = (source.parent / name for name in external_names(read_structure(source)))
    size = sum(path.stat().st_size for path in (source, *data))
    if size > LIMIT:
        return _pass_through(f"the model has {size / 1e9:.1f} GB, and a file in ORT format can have at most 2 GB")
    report(0.0, "converting")
    with tempfile.TemporaryDirectory(dir=request.output) as scratch:
        saved = Path(scratch) / ENTRY
        try:
            save_as_ort(source, saved)
        except StageError as error:
            return _pass_through("; ".join((error.message, *error.details)))
        canonicalize_ort(saved, request.output / ENTRY)
    written = (request.output / ENTRY).stat().st_size
    return StageResult(facts={"format": "ort", "bytes": written}, entry=ENTRY, notes=_describe_growth(size, written))


def _describe_growth(before: int, after: int) -> tuple[Note, ...]:
    """Lists of numbers in attributes take more room in ORT format: a forest twice as much."""
    if after < _GROWTH * before or after - before < _MUCH:
        return ()
    sizes = f"{format_bytes(after)}, {format_bytes(before)} as ONNX"
    return (Note(text=f"the model takes {sizes}: ORT format loads faster; --set optimization.format=onnx is smaller"),)


def _pass_through(reason: str) -> StageResult:
    note = Note(text=f"not converted to ORT format, it stays ONNX: {reason}", level="warning")
    return StageResult(facts={"format": "onnx"}, notes=(note,))
