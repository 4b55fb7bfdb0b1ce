"""Write a model in ORT format, without optimisation, in canonical form. A model that cannot be converted stays ONNX."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from bundler.model.errors import StageError
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.sessions import SessionSettings, save_through_session, session_options
from bundler.onnxkit.structure import external_names, read_structure
from bundler.stages.convert_ort.canonical_ort import canonicalize_ort

ENTRY = "model.ort"
LIMIT: Final = 2**31 - 1
"""Limit of a FlatBuffers file in bytes, with its 32-bit signed offsets."""
_SETTINGS: Final = SessionSettings(
    session={"graph_optimization_level": "none", "enable_cpu_mem_arena": False},
    session_config={"session.save_model_format": "ORT", "session.disable_prepacking": "1"},
)


def run(request: StageRequest, report: Report) -> StageResult:
    """`model.ort`, or nothing and a note when the model stays in ONNX format."""
    source = request.input("model")
    size = _total_bytes(source)
    if size > LIMIT:
        return _pass_through(f"the model has {size / 1e9:.1f} GB, and a file in ORT format can have at most 2 GB")
    report(0.0, "converting")
    with tempfile.TemporaryDirectory(dir=request.output) as scratch:
        saved = Path(scratch) / ENTRY
        try:
            _convert(source, saved)
        except StageError as error:
            return _pass_through("; ".join((error.message, *error.details)))
        canonicalize_ort(saved, request.output / ENTRY)
    facts = {"format": "ort", "bytes": (request.output / ENTRY).stat().st_size}
    return StageResult(facts=facts, entry=ENTRY)


def _convert(source: Path, saved: Path) -> None:
    options = session_options(_SETTINGS)
    options.optimized_model_filepath = str(saved)
    save_through_session(source, options, _SETTINGS, error=StageError)


def _pass_through(reason: str) -> StageResult:
    note = Note(text=f"not converted to ORT format, it stays ONNX: {reason}", level="warning")
    return StageResult(facts={"format": "onnx"}, notes=(note,))


def _total_bytes(source: Path) -> int:
    return source.stat().st_size + sum(
        (source.parent / name).stat().st_size for name in external_names(read_structure(source))
    )
