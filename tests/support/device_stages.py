"""Compile models for devices that are not here, and run what was compiled in the vendor's emulation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

from bundler.environments.registry import Environments
from bundler.execution.pool import Worker, WorkerPool
from bundler.execution.stage_sources import stage_packages
from bundler.model.codec import decode
from bundler.model.results import Comparison, StepOutcome
from tests.support.environment_stages import StageRunner

QNN: Final = "QNNExecutionProvider"
OPENVINO: Final = "OpenVINOExecutionProvider"
LIBRARIES: Final = {QNN: "onnxruntime_qnn", OPENVINO: "onnxruntime_ep_openvino"}
ENVIRONMENTS: Final = {QNN: "qnn", OPENVINO: "openvino"}
CPU_DEVICE: Final = {"ov_device": "CPU"}

SM8650: Final = {"backend_type": "htp", "soc_model": "57", "htp_arch": "75"}
"""Snapdragon 8 Gen 3, by its numbers."""
HALF: Final = {"enable_htp_fp16_precision": "1"}


def compile_options(provider: str = QNN, options: Mapping[str, str] = SM8650, **others: Any) -> dict[str, Any]:
    """The stage's options."""
    return {"provider": provider, "library": LIBRARIES[provider], "options": dict(options), **others}


def compile_for(
    run: StageRunner, model: Path, options: Mapping[str, str] = SM8650, *, provider: str = QNN, **others: Any
) -> StepOutcome:
    """Run `compile_context` in the provider's environment."""
    inputs = {"model": model} | ({"partner": others.pop("partner")} if "partner" in others else {})
    return run("compile_context", ENVIRONMENTS[provider], inputs, **compile_options(provider, options, **others))


def compare_on(
    run: StageRunner,
    model: Path,
    golden: Path,
    options: Mapping[str, str] = SM8650,
    *,
    provider: str = QNN,
    **others: Any,
) -> Comparison:
    """Run `compare` with the provider's plugin; `select` and everything else are options."""
    entry = {"library": LIBRARIES[provider], "select": others.pop("select", {})}
    settings = {"providers": [[provider, dict(options)]], "plugins": {provider: entry}, **others}
    outcome = run("compare", ENVIRONMENTS[provider], {"model": model, "golden": golden}, **settings)
    return decode(Comparison, dict(outcome.facts))


def compile_in_turn(environments: Environments, logs: Path, model: Path, outputs: Iterable[Path]) -> list[dict]:
    """The answers of one worker that compiles the same model again and again."""
    pool = WorkerPool(logs)
    try:
        with pool.lease(environments.resolve("qnn")) as worker:
            return [_post(worker, model, output) for output in outputs]
    finally:
        pool.close()


def _post(worker: Worker, model: Path, output: Path) -> dict[str, Any]:
    output.mkdir(parents=True)
    request = {
        "stage": "compile_context",
        "module": "bundler.stages.compile_context.run",
        "packages": stage_packages("compile_context"),
        "inputs": {"model": str(model)},
        "options": compile_options(options=SM8650 | HALF),
        "output": str(output),
        "folder": str(output.parent),
    }
    return worker.wait(worker.post(request), "compile_context", 60, lambda _share, _text: None)


def read_files(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def context_nodes(model: Path) -> list[dict[str, Any]]:
    """The attributes of every node that stands for something compiled."""
    graph = onnx.load(model, load_external_data=False).graph
    nodes = (node for node in graph.node if node.op_type == "EPContext")
    return [{item.name: onnx.helper.get_attribute_value(item) for item in node.attribute} for node in nodes]


def worst_sqnr(comparison: Comparison) -> float:
    """The least signal to noise of all outputs, in dB; infinite where nothing differs."""
    assert not [output.mismatch for output in comparison.outputs if output.mismatch]
    found = (output.sqnr_db for output in comparison.outputs)
    return min((value for value in found if value is not None), default=float(np.inf))
