"""GPTQ by the reference, with samples that are read one at a time."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnxruntime
from onnxruntime.quantization import matmul_nbits_quantizer as reference
from onnxruntime.quantization.neural_compressor import weight_only

from bundler.model.errors import StageError
from bundler.onnxkit.canonical.tensor_data import embed_data
from bundler.onnxkit.golden import GoldenSet, read_golden
from bundler.onnxkit.linked_models import LinkedModel
from bundler.onnxkit.sessions import RUNTIME_ERRORS, SessionSettings, clean_message, session_options
from bundler.onnxkit.structure import iterate_tensors, tensor_bytes
from bundler.stages.quantize_weights.block_quantizer import Tick, check_finite, explain_failure
from bundler.stages.quantize_weights.spec import Options
from bundler.stages.quantize_weights.targets import Targets

_MAX_BYTES: Final = 2**31 - 2**26
"""The reference serialises the whole model with its weights as one protobuf message."""


def quantize_gptq(linked: LinkedModel, targets: Targets, options: Options, samples: Path, tick: Tick) -> int:
    """Quantise the targets of a linked model in place; returns the number of samples. Raises `StageError`.

    The reference transposes its Cholesky factor, and then reads the half of it that is zero: it propagates no error,
    and its codes equal those of round-to-nearest for all samples (a test shows it). It is given the transposed factor,
    so that it reads the right half.
    """
    golden = read_golden(samples)
    if not golden.entries:
        raise StageError("GPTQ requires samples, and the set has none", hint=_HINT)
    if sum(map(tensor_bytes, iterate_tensors(linked.model))) > _MAX_BYTES:
        raise StageError(
            "GPTQ supports models up to 2 GB", hint="algorithm `hqq` requires no data and supports any size"
        )
    for tensor in iterate_tensors(linked.model):
        embed_data(tensor, linked.folders)
    _prepare_weights(linked, targets)
    quantizer = _Quantizer(
        linked.model,
        bits=options.bits,
        block_size=options.block_size,
        is_symmetric=options.symmetric,
        accuracy_level=options.accuracy_level or None,
        algo_config=reference.GPTQWeightOnlyQuantConfig(),
    )
    quantizer.wanted = set(targets.operators)
    with explain_failure(), _explain_run(), _streaming(_Samples(golden), tick):
        quantizer.process()
    linked.model.CopyFrom(quantizer.model.model)
    if not any(item.domain == "com.microsoft" for item in linked.model.opset_import):
        linked.model.opset_import.add(domain="com.microsoft", version=1)
    return len(golden.entries)


_HINT = "give real inputs (`--calibration`), or use algorithm `hqq`, which requires none"


def _prepare_weights(linked: LinkedModel, targets: Targets) -> None:
    """Duplicate shared weights: their quantised values depend on the inputs of the node."""
    graph = linked.model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    seen: set[str] = set()
    for node in graph.node:
        if node.name in targets.operators and node.input[1] in weights:
            weight = weights[node.input[1]]
            check_finite(weight)
            if weight.name in seen:
                copy = graph.initializer.add()
                copy.CopyFrom(weight)
                copy.name = node.input[1] = f"{node.name}/{weight.name}"
            seen.add(node.input[1])


class _Quantizer(reference.MatMulNBitsQuantizer):  # type: ignore[misc] # the library has no types
    """Support excluded nodes, which the reference ignores for this algorithm only."""

    wanted: set[str]

    def _generate_q4_node_config(self) -> dict[str, Any]:
        given = super()._generate_q4_node_config()
        products = [node for node in self.model.model.graph.node if node.op_type == "MatMul"]
        return {node.name: given.get(node.name, "fp32") if node.name in self.wanted else "fp32" for node in products}


class _Samples:
    """The inputs of every sample, read again for each pass: the reference would keep them all."""

    def __init__(self, golden: GoldenSet) -> None:
        self._golden = golden

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(sample.inputs) for sample in self._golden)


@contextlib.contextmanager
def _streaming(samples: _Samples, tick: Tick) -> Iterator[None]:
    """Inside this context, the reference reads its inputs from `samples` (its own reader holds all of them, and uses
    torch to find their types), runs quietly, and reports progress.
    """
    before = weight_only.prepare_inputs, weight_only.simple_progress_bar, np.linalg.cholesky
    options = session_options(SessionSettings())
    weight_only.prepare_inputs = lambda *_given: (samples, options)
    weight_only.simple_progress_bar = lambda total, done: tick(done - 1, total)
    np.linalg.cholesky = lambda matrix: before[2](matrix).T  # type: ignore[assignment] # see `quantize_gptq`
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        weight_only.prepare_inputs, weight_only.simple_progress_bar, np.linalg.cholesky = before


_ONLY_RUNTIME: Final = tuple(item for item in RUNTIME_ERRORS if item.__module__.startswith(onnxruntime.__name__))


@contextlib.contextmanager
def _explain_run() -> Iterator[None]:
    try:
        yield
    except _ONLY_RUNTIME as cause:
        hint = "samples must have the names, types and shapes of the model's inputs"
        details = (clean_message(cause),)
        raise StageError("the model does not run on the samples", details=details, hint=hint) from cause
