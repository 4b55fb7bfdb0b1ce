"""Optimise the graph ahead of time with the runtime, and write the result in canonical form."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from onnx import ModelProto

from bundler.model.codec import decode
from bundler.model.errors import StageError
from bundler.model.stage import Note, Report, StageRequest, StageResult
from bundler.onnxkit.canonical.writing import canonicalize
from bundler.onnxkit.sessions import SessionSettings, save_through_session
from bundler.onnxkit.signatures import check_interface
from bundler.onnxkit.structure import count_operators, iterate_nodes, read_structure
from bundler.stages.optimize.doubles import narrow_doubles
from bundler.stages.optimize.listed_weights import has_listed_initializers, link_model
from bundler.stages.optimize.spec import Options

ENTRY = "model.onnx"
_EMBEDDED_LIMIT = 1 << 28
"""Size of a model file in bytes from which its weights are treated as external: they are not loaded or written."""
_FOLDING = "ConstantFolding"
"""The runtime's name of the optimiser that replaces decided conditions by one of their branches."""
_NOT_FOLDED = Note(
    text="constants are not folded ahead of time: ONNX Runtime cannot fold the branches of this model's conditions"
)
_NARROWED = Note(text="what the model computes in float64 is computed in float32, because the provider has no float64")
_LAYOUT_DOMAINS = ("com.microsoft.nchwc", "com.ms.internal.nhwc")
"""Domains of operators with a block size for the building machine's CPU: elsewhere they fail or give wrong outputs."""


def run(request: StageRequest, report: Report) -> StageResult:
    """`model.onnx` and, above the threshold, `model.onnx.data`. Raises `StageError`."""
    source, options = request.input("model"), decode(Options, dict(request.options))
    before = read_structure(source)
    report(0.0, "optimising")
    with tempfile.TemporaryDirectory(dir=request.output) as scratch:
        structure, notes, folded = before, _notes(before), True
        if options.single_precision and (narrowed := narrow_doubles(source, Path(scratch) / "single.onnx")):
            source, structure, notes = narrowed, read_structure(narrowed), (*notes, _NARROWED)
        saved = source
        if options.level != "none":
            saved = Path(scratch) / f"{source.name}.optimised"
            folded = _optimize(source, structure, saved, options)
        report(0.6, "writing the canonical form")
        target = request.output / ENTRY
        after = canonicalize(
            saved,
            target,
            source=source.parent,
            external_threshold=options.external_threshold,
            external_minimum=options.external_minimum,
        )
    _check(before, after)
    facts = {
        "level": options.level,
        "nodes_before": sum(1 for _ in iterate_nodes(before)),
        "nodes_after": sum(1 for _ in iterate_nodes(after)),
        "operators": count_operators(after),
        "bytes": sum(path.stat().st_size for path in request.output.iterdir()),
        "disabled_optimizers": [] if folded else [_FOLDING],
    }
    return StageResult(facts=facts, entry=ENTRY, notes=notes if folded else (*notes, _NOT_FOLDED))


def _optimize(source: Path, structure: ModelProto, saved: Path, options: Options) -> bool:
    """Write the runtime's own saved model. Its large initializers stay in the source's external data. Returns whether
    constants were folded as far as the options say.

    Folding also decides conditions inside a branch that no call with these sizes takes. Where that breaks the model,
    constants stay as they are.
    """
    settings = SessionSettings(
        session={"graph_optimization_level": options.level, "enable_cpu_mem_arena": False},
        session_config={
            "session.qdqisint8allowed": "1" if options.int8_allowed else "0",
            # Packed copies of the weights are for runs, and there is none.
            "session.disable_prepacking": "1",
            "session.model_external_initializers_file_folder_path": str(source.parent),
        },
        disabled_optimizers=options.disabled_optimizers,
    )
    conditional = any(node.op_type == "If" for node in iterate_nodes(structure))
    large = source.stat().st_size > _EMBEDDED_LIMIT
    model = link_model(source) if large or conditional or has_listed_initializers(structure) else source
    try:
        save_through_session(model, saved, settings)
    except StageError:
        if not conditional:
            raise
        kept = replace(settings, disabled_optimizers=(*settings.disabled_optimizers, _FOLDING))
        save_through_session(model, saved, kept)
        return False
    return True


def _check(before: ModelProto, after: ModelProto) -> None:
    check_interface(before, after)
    layouts = {node.domain for node in iterate_nodes(after)}.intersection(_LAYOUT_DOMAINS)
    if layouts:
        raise StageError(
            f"the optimised model has operators for one CPU class ({', '.join(sorted(layouts))})",
            hint="optimise at level `extended` or lower",
        )


def _notes(before: ModelProto) -> tuple[Note, ...]:
    if not has_listed_initializers(before):
        return ()
    text = "the model's weights were listed as inputs, as its old format required; they are plain weights now"
    return (Note(text=text),)
