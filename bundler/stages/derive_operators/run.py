"""Write the configuration of a custom runtime build with exactly the operators and types of a model."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from onnxruntime.tools.ort_format_model.operator_type_usage_processors import OperatorTypeUsageManager
from onnxruntime.tools.ort_format_model.ort_model_processor import OrtFormatModelProcessor

from bundler.model.errors import StageError
from bundler.model.stage import Report, StageRequest, StageResult
from bundler.onnxkit.sessions import save_as_ort
from bundler.stages.derive_operators.weightless import read_weightless

ENTRY = "required_operators.config"

Row = tuple[str, int, str, str]
"""Domain, opset, operator, and its types in the notation of the runtime's configuration (JSON, or empty)."""


def run(request: StageRequest, report: Report) -> StageResult:
    """The configuration, and the same as facts. Raises `StageError` for a model that ORT format cannot hold."""
    source = request.input("model")
    report(0.0, "reading operators and types")
    with tempfile.TemporaryDirectory(dir=request.output) as scratch:
        rows = sorted(_rows(_as_ort(source, Path(scratch))))
    (request.output / ENTRY).write_text(_render(rows), encoding="utf-8")
    return StageResult(facts={"operators": [_describe(row) for row in rows]}, entry=ENTRY)


def _as_ort(source: Path, scratch: Path) -> Path:
    if source.suffix == ".ort":
        return source
    saved = scratch / "model.ort"
    try:
        save_as_ort(read_weightless(source), saved)
    except StageError:
        # A kernel requires a constant weight: write the model with all weights.
        save_as_ort(source, saved)
    return saved


def _rows(model: Path) -> Iterable[Row]:
    required: dict[str, dict[int, set[str]]] = {}
    types = OperatorTypeUsageManager()
    with warnings.catch_warnings():
        # The library leaves the file open until it is garbage collected.
        warnings.simplefilter("ignore", ResourceWarning)
        OrtFormatModelProcessor(str(model), required, types).process()
    for domain, opsets in required.items():
        for opset, operators in opsets.items():
            for operator in operators:
                yield domain, opset, operator, types.get_config_entry(domain, operator) or ""


def _render(rows: Iterable[Row]) -> str:
    """ONNX Runtime's format: `domain;opset;Operator{types},…`, one line for each domain and opset."""
    lines: dict[tuple[str, int], list[str]] = {}
    for domain, opset, operator, types in rows:
        lines.setdefault((domain, opset), []).append(operator + types)
    return "".join(f"{domain};{opset};{','.join(operators)}\n" for (domain, opset), operators in lines.items())


def _describe(row: Row) -> Mapping[str, Any]:
    domain, opset, operator, types = row
    return {
        "domain": domain or "ai.onnx",
        "opset": opset,
        "operator": operator,
        "types": json.loads(types) if types else {},
    }
