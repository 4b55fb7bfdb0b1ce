"""Load, export, write in canonical form, and compare with PyTorch."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Final

from bundler.model.codec import decode, encode
from bundler.model.errors import StageError, UsageError
from bundler.model.signature import Port
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.stages.export_huggingface.folder import ModelFolder, read_folder
from bundler.stages.export_huggingface.spec import Options

ENTRY: Final = "model.onnx"
_EMBEDDED_LIMIT: Final = 1 << 30
"""Bytes above which weights are stored outside the model file, which can hold 2 GB."""
_EXTERNAL_THRESHOLD: Final = 1024
_CLOSED: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
"""Environment variables that the libraries read when they are imported: no network, and no telemetry. The export itself
names the CPU as its device: of the two builds of PyTorch in the lock, only one could use a GPU."""


def run(request: StageRequest, report: Report) -> StageResult:
    """`model.onnx` and, for large models, `model.onnx.data`. Raises `ModelError`, `UsageError`, `StageError`."""
    options = decode(Options, dict(request.options))
    if options.dtype != "fp32":
        raise UsageError(
            f"exports are in fp32, not {options.dtype!r}", hint="`--set precision.method=…` makes it smaller"
        )
    source = request.input("source")
    folder = read_folder(source if source.is_dir() else source.parent)
    report(0.0, "loading PyTorch")
    os.environ.update(_CLOSED)
    return _export(folder, options, request.output, report)


def _export(folder: ModelFolder, options: Options, output: Path, report: Report) -> StageResult:
    # Imported only now: the libraries read the environment when they are imported.
    from bundler.onnxkit.canonical.writing import canonicalize  # noqa: PLC0415
    from bundler.onnxkit.sessions import REFERENCE, open_session  # noqa: PLC0415
    from bundler.onnxkit.signatures import model_signature  # noqa: PLC0415
    from bundler.stages.export_huggingface import exporting, reference, shapes  # noqa: PLC0415
    from bundler.stages.export_huggingface.loading import load_model  # noqa: PLC0415
    from bundler.stages.export_huggingface.trials import Pair  # noqa: PLC0415

    report(0.3, "loading the model")
    loaded = load_model(folder, options.task)
    config = exporting.export_config(loaded, folder)
    target = output / ENTRY
    with tempfile.TemporaryDirectory(dir=output) as scratch:
        report(0.4, f"exporting for {loaded.task}")
        saved = Path(scratch) / ENTRY
        opset = exporting.export_model(loaded, config, options.opset, saved, folder)
        report(0.6, "running PyTorch")
        raw = Pair(loaded=loaded, config=config, session=open_session(saved, REFERENCE, error=StageError))
        trials = reference.make_trials(raw)
        fixed, others = shapes.find_fixed(raw, trials[0])
        del raw
        shapes.write_shapes(saved, fixed, [trial.expected for trial in trials], others)
        report(0.8, "writing the canonical form")
        structure = canonicalize(
            saved, target, source=saved.parent, external_threshold=_EXTERNAL_THRESHOLD, external_minimum=_EMBEDDED_LIMIT
        )
    report(0.9, "comparing with PyTorch")
    final = Pair(loaded=loaded, config=config, session=open_session(target, REFERENCE, error=StageError))
    differences = reference.compare(final, trials)
    signature = model_signature(structure)
    facts = {
        "task": loaded.task,
        "task_given": options.task != "auto",
        "architecture": type(loaded.model).__name__,
        "model_type": folder.model_type,
        "opset": opset,
        "parameters": int(loaded.model.num_parameters()),
        "inputs": [_describe(port) for port in signature.inputs],
        "outputs": [_describe(port) for port in signature.outputs],
        "fixed": fixed,
        "reference": encode(differences),
        "trials": len(trials),
        "preprocessing": list(folder.preprocessing),
        "unused": loaded.unused,
        "model_id": options.model_id,
        "revision": options.revision,
    }
    return StageResult(facts=facts, entry=ENTRY, notes=_notes(folder, facts))


def _describe(port: Port) -> dict[str, Any]:
    return {"name": port.name, "type": port.type.element_type, "shape": list(port.type.shape or ())}


def _notes(folder: ModelFolder, facts: dict[str, Any]) -> tuple[Note, ...]:
    worst = max(item["max_relative"] for item in facts["reference"].values())
    shown = f"exported {facts['architecture']} for {facts['task']} at opset {facts['opset']}"
    notes = [Note(text=f"{shown}; its outputs equal PyTorch's to within {worst:.1e} of the range")]
    if folder.pooled:
        text = "a pipeline of sentence-transformers: the application must do the pooling and the later parts"
        notes.append(Note(text=f"{text}, which receives the model's own outputs", level="warning"))
    if facts["unused"]:
        notes.append(Note(text=f"{facts['unused']} weights of the checkpoint are for other tasks and are not exported"))
    if folder.preprocessing:
        notes.append(
            Note(
                text=f"the application also needs these files of the model's folder: {', '.join(folder.preprocessing)}"
            )
        )
    return tuple(notes)
