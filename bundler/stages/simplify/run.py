"""Fold constants and remove redundant nodes. When the library fails, the plan goes on without this optional step."""

from __future__ import annotations

import importlib
import tempfile
import warnings
from pathlib import Path

import onnx
from google.protobuf.message import EncodeError

from bundler.model.codec import decode
from bundler.model.errors import StageError
from bundler.model.stage import Report, StageRequest, StageResult
from bundler.onnxkit.node_order import write_sorted
from bundler.onnxkit.signatures import check_interface
from bundler.onnxkit.structure import PYTHON_ERRORS, count_operators, has_external_data, iterate_nodes, read_structure
from bundler.stages.simplify.spec import TOOLS, Options

ENTRY = "model.onnx"
_EMBEDDED_LIMIT = 2**30
"""Bytes above which weights are stored outside the model file, which can hold 2 GB: folding may add some."""
_LIBRARY_ERRORS = (*PYTHON_ERRORS, EncodeError, onnx.checker.ValidationError)
"""Errors that a pass raises on a graph that it does not support; onnx_ir's own errors are subclasses of these."""


def run(request: StageRequest, report: Report) -> StageResult:
    """A smaller model. Raises `StageError` when the library fails or changes the model's inputs or outputs."""
    source, tool = request.input("model"), decode(Options, dict(request.options)).tool
    if tool not in TOOLS:
        raise StageError(f"no simplifier is named {tool[:60]!r}", hint=f"use one of {', '.join(TOOLS)}")
    before = read_structure(source)
    report(0.0, f"simplifying with {tool}")
    target = request.output / ENTRY
    external = has_external_data(before) or source.stat().st_size > _EMBEDDED_LIMIT
    with tempfile.TemporaryDirectory(dir=request.output) as scratch:
        _simplify(tool, write_sorted(source, Path(scratch, ENTRY), external=external), target, external=external)
    after = read_structure(target)
    check_interface(before, after)
    facts = {
        "tool": tool,
        "nodes_before": sum(1 for _ in iterate_nodes(before)),
        "nodes_after": sum(1 for _ in iterate_nodes(after)),
        "operators": count_operators(after),
    }
    return StageResult(facts=facts, entry=ENTRY)


def _simplify(tool: str, source: Path, target: Path, *, external: bool) -> None:
    simplify = importlib.import_module(f"bundler.stages.simplify.tools.{tool}").simplify
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            simplify(source, target, f"{ENTRY}.data" if external else None)
        onnx.checker.check_model(str(target))
    except _LIBRARY_ERRORS as cause:
        first = str(cause).partition("\n")[0][:300]
        raise StageError(
            f"the simplifier {tool} cannot process this model", details=(f"{type(cause).__name__}: {first}",)
        ) from cause
