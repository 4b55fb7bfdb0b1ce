"""Build an engine for GPUs of other machines, and wrap it as a model that ONNX Runtime's provider loads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

from onnx import ModelProto, TensorProto

from bundler.model.codec import decode
from bundler.model.errors import StageError
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.placement_facts import count_placement, counted_nodes
from bundler.onnxkit.signatures import check_interface
from bundler.onnxkit.structure import iterate_nodes, iterate_tensors, read_structure
from bundler.stages.build_engine.building import Built, build_engine
from bundler.stages.build_engine.devices import choose_devices, load_library, mask_of, note_unopened
from bundler.stages.build_engine.header import check_engine
from bundler.stages.build_engine.spec import Options
from bundler.stages.build_engine.wrapping import default_inputs, state_compatibility, wrap_engine

ENTRY: Final = "model.onnx"
ENGINE: Final = "engine.bin"
_PLATFORM: Final = "windows" if sys.platform == "win32" else "linux"
"""TensorRT for RTX builds for the system that it runs on: an engine from Linux does not load on Windows."""


def run(request: StageRequest, report: Report) -> StageResult:
    """`model.onnx` and, unless it is embedded, `engine.bin`. Raises `StageError`, `ModelError`."""
    source, options = request.input("model"), decode(Options, dict(request.options))
    model = read_structure(source)
    _check_platform(options.platform)
    if options.half:
        _check_half(model)
    library = load_library()
    members = tuple(library.ComputeCapability.__members__)
    names = choose_devices(options.devices, members)
    report(0.1, f"building for {', '.join(names)}")
    engine = request.output / ENGINE
    built = build_engine(source, model, names, options.profiles, engine)
    report(0.9, "writing")
    header = check_engine(engine, library.__version__, mask_of(names.values(), members))
    size = engine.stat().st_size
    _write_model(request.output, model, options, library.__version__, ",".join(names.values()))
    facts = _describe(options, model, built, header, tuple(names)) | {"sdk": library.__version__, "bytes": size}
    notes = (*note_unopened(names), *_note_defaults(model), *_note_repeatable(built))
    return StageResult(facts=facts, entry=ENTRY, notes=notes)


def _check_platform(asked: str) -> None:
    if asked not in ("", _PLATFORM):
        hint = "compile on the device: compile = { here = false }"
        raise StageError(f"TensorRT for RTX cannot build an engine for {asked[:20]!r} on {_PLATFORM}", hint=hint)


def _check_half(model: ModelProto) -> None:
    narrow = any(tensor.data_type == TensorProto.FLOAT16 for tensor in iterate_tensors(model)) or any(
        attribute.name == "to" and attribute.i == TensorProto.FLOAT16
        for node in iterate_nodes(model)
        for attribute in node.attribute
    )
    if not narrow:
        hint = "convert it first: --set precision.method=fp16"
        details = ("TensorRT for RTX computes in the model's declared types",)
        raise StageError("nothing in this model is in half precision", details=details, hint=hint)


def _write_model(output: Path, source: ModelProto, options: Options, version: str, devices: str) -> None:
    engine = output / ENGINE
    file = "" if options.embed else ENGINE
    model = wrap_engine(source, memoryview(engine.read_bytes()), options.provider, version, devices=devices, file=file)
    if not default_inputs(source):
        check_interface(source, model)
    (output / ENTRY).write_bytes(model.SerializeToString(deterministic=True))
    if options.embed:
        engine.unlink()


def _describe(
    options: Options, model: ModelProto, built: Built, header: bytes, devices: tuple[str, ...]
) -> dict[str, Any]:
    return {
        **count_placement(options.provider, len(counted_nodes(model)), ()),
        "contexts": 1,
        "whole": True,
        "devices": list(devices),
        "statement": state_compatibility(header),
        "platform": _PLATFORM,
        "tf32": built.tf32,
        "profiles": dict(built.profiles),
    }


def _note_repeatable(built: Built) -> tuple[Note, ...]:
    if built.repeatable or not built.profiles:
        return ()
    text = (
        "TensorRT for RTX does not build this model with dynamic shapes reproducibly: a second build gives an "
        "engine with different bytes that computes the same"
    )
    return (Note(text=text, level="warning"),)


def _note_defaults(model: ModelProto) -> tuple[Note, ...]:
    names = default_inputs(model)
    if not names:
        return ()
    listed = ", ".join(repr(name[:80]) for name in names[:8])
    text = f"{listed}: the default values are built into the engine, which does not take them as inputs"
    return (Note(text=text, level="warning"),)
