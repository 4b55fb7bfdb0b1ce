"""Try the model types that may fit a graph, keep the one that fuses most, and write it in canonical form."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import ModelProto

from bundler.model.codec import decode
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.canonical.writing import canonicalize
from bundler.onnxkit.signatures import check_interface
from bundler.onnxkit.structure import count_operators, iterate_nodes, iterate_tensors, read_structure, tensor_bytes
from bundler.stages.fuse_transformers.attempts import Attempt, Subject, attempt_fusion, choose_best, list_candidates
from bundler.stages.fuse_transformers.checking import check_options
from bundler.stages.fuse_transformers.detection import count_attentions
from bundler.stages.fuse_transformers.preparing import EMBEDDED_LIMIT, EXTERNAL_THRESHOLD
from bundler.stages.fuse_transformers.spec import Options

ENTRY = "model.onnx"


def run(request: StageRequest, report: Report) -> StageResult:
    """`model.onnx` and, for a large model, `model.onnx.data`. Raises `UsageError`, `StageError`."""
    options = decode(Options, dict(request.options))
    disabled = check_options(options)
    source = request.input("model")
    subject = Subject(source=source, structure=read_structure(source), options=options, disabled=disabled)
    with tempfile.TemporaryDirectory(dir=request.output) as scratch:
        attempts = _attempt_all(subject, Path(scratch), report)
        best, model = choose_best(attempts, subject)
        report(0.8, "writing the canonical form")
        after = _write(model, Path(scratch), request.output / ENTRY)
    check_interface(subject.structure, after)
    facts = _choice_facts(subject, attempts, best) | _model_facts(subject.structure, after, best)
    return StageResult(facts=facts, entry=ENTRY, notes=_notes(options, best, facts["attentions"]))


def _attempt_all(subject: Subject, scratch: Path, report: Report) -> list[Attempt]:
    candidates = list_candidates(subject)
    attempts = []
    for number, candidate in enumerate(candidates):
        report(0.8 * number / len(candidates), f"fusing as {candidate.model_type}")
        attempts.append(attempt_fusion(subject, candidate, scratch / str(number)))
        if attempts[-1].attentions >= count_attentions(subject.structure) > 0:
            break  # no other type can fuse more
    return attempts


def _write(model: ModelProto, scratch: Path, target: Path) -> ModelProto:
    saved = scratch / "fused.onnx"
    large = sum(map(tensor_bytes, iterate_tensors(model))) > EMBEDDED_LIMIT
    onnx.save(
        model,
        saved,
        save_as_external_data=large,
        location="fused.onnx.data" if large else None,
        size_threshold=EXTERNAL_THRESHOLD,
    )
    return canonicalize(
        saved, target, source=scratch, external_threshold=EXTERNAL_THRESHOLD, external_minimum=EMBEDDED_LIMIT
    )


def _choice_facts(subject: Subject, attempts: Sequence[Attempt], best: Attempt) -> dict[str, Any]:
    options = subject.options
    return {
        "backend": options.backend,
        "model_type": best.choice.model_type,
        "detected": options.model_type == "auto",
        "reasons": [f"{item.candidate.model_type}: {item.candidate.reason}" for item in attempts],
        "tried": [
            {
                "model_type": item.choice.model_type,
                "fused": sum(item.fused.values()),
                "attentions": item.attentions,
                "problem": item.problem,
            }
            for item in attempts
        ],
        "heads": best.choice.heads,
        "hidden_size": best.choice.hidden_size,
        "heads_from": _heads_source(options, best),
        "level": best.level,
        "mask": "end" if options.packed else options.mask,
        "disabled": list(subject.disabled),
    }


def _heads_source(options: Options, best: Attempt) -> str:
    if options.heads:
        return "given"
    return "structure" if best.choice.heads else "library"


def _model_facts(before: ModelProto, after: ModelProto, best: Attempt) -> dict[str, Any]:
    return {
        "fused": dict(sorted(best.fused.items())),
        "attentions": count_attentions(before),
        "attentions_fused": best.attentions,
        "nodes_before": sum(1 for _ in iterate_nodes(before)),
        "nodes_after": sum(1 for _ in iterate_nodes(after)),
        "operators": count_operators(after),
    }


def _notes(options: Options, best: Attempt, attentions: int) -> tuple[Note, ...]:
    notes = []
    if best.attentions < attentions and "attention" not in options.disabled:
        text = f"{best.attentions} of {attentions} attentions were fused: the library has no pattern for the others"
        notes.append(Note(text=text, level="warning"))
    if options.mask == "end" or options.packed:
        text = "the fused model reads each row's mask as a length: it is correct only for padding on the right"
        notes.append(Note(text=text, level="warning"))
    if options.packed:
        notes.append(Note(text="packed attention runs on CUDA only"))
    return tuple(notes)
