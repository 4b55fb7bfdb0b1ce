"""Round-to-nearest and HQQ with the reference's code, one loaded weight at a time."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, Final

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto
from onnxruntime.quantization import matmul_nbits_quantizer as reference

from bundler.model.errors import StageError
from bundler.onnxkit.linked_models import LinkedModel
from bundler.onnxkit.structure import PYTHON_ERRORS, iterate_nodes
from bundler.stages.quantize_weights.hqq import HqqQuantizer
from bundler.stages.quantize_weights.spec import Options
from bundler.stages.quantize_weights.targets import WEIGHT_INPUT, Targets

_RTN_OPERATORS: Final = ("MatMul", "Gather")

Tick = Callable[[int, int], None]
"""Called with the number of finished weights and their total."""


def quantize_blocks(linked: LinkedModel, targets: Targets, options: Options, tick: Tick) -> None:
    """Quantise the targets of a linked model in place. Raises `StageError`."""
    domains = {node.name: node.domain for node in iterate_nodes(linked.model)}
    others = [node.name for node in iterate_nodes(linked.model) if node.name not in targets.operators]
    configuration = reference.DefaultWeightOnlyQuantConfig(
        block_size=options.block_size,
        is_symmetric=options.symmetric,
        accuracy_level=options.accuracy_level,
        bits=options.bits,
        op_types_to_quantize=tuple(name for name in _RTN_OPERATORS if name in options.operators) or None,
    )
    quantizer = reference.MatMulNBitsQuantizer(
        linked.model, bits=options.bits, nodes_to_exclude=others, algo_config=configuration
    )
    quantizer.model.clean_initializers = lambda: None  # the canonical form removes unused ones, and keeps the inputs
    inner = HqqQuantizer(quantizer.algo_config) if options.algorithm == "hqq" else quantizer.node_quantizer
    quantizer.node_quantizer = _OneByOne(inner, linked, len(targets.operators), tick)
    with explain_failure():
        quantizer.process()
    for node in iterate_nodes(linked.model):
        # The reference recreates nodes with subgraphs, and loses their domain.
        if domains.get(node.name):
            node.domain = domains[node.name]


class _OneByOne:
    """Passes nodes to the reference's quantiser with their weight loaded, and unloads the weight again afterwards."""

    def __init__(self, inner: Any, linked: LinkedModel, total: int, tick: Tick) -> None:
        self._inner, self._linked, self._total, self._tick = inner, linked, total, tick
        self._done = 0

    def quantize(self, node: NodeProto, graph_stack: list[GraphProto]) -> list[NodeProto]:
        """The nodes that replace this node. Raises `StageError` for a weight that is not finite."""
        weight, graph = reference.get_initializer(node.input[WEIGHT_INPUT[node.op_type]], graph_stack)
        known = [tensor.name for tensor in graph.initializer]
        with loaded(self._linked, weight):
            check_finite(weight)
            nodes: list[NodeProto] = self._inner.quantize(node, graph_stack)
        _drop_repeated(graph, known)
        self._done += 1
        self._tick(self._done, self._total)
        return nodes


@contextlib.contextmanager
def loaded(linked: LinkedModel, tensor: TensorProto) -> Iterator[None]:
    """Inside this context, the tensor contains its data."""
    link = deepcopy(tensor)
    tensor.CopyFrom(linked.whole(tensor))
    try:
        yield
    finally:
        tensor.CopyFrom(link)


def check_finite(tensor: TensorProto) -> None:
    """Raise `StageError` when a loaded weight holds NaN or infinity."""
    values = reference.ir.from_proto(tensor).numpy()
    wrong = int(values.size - np.isfinite(values.astype(np.float32, copy=False)).sum())
    if wrong:
        raise StageError(
            f"the weight {tensor.name[:80]!r} cannot be quantised: {wrong} of {values.size} values are NaN or infinite",
            hint="the model may be damaged; or exclude the node that reads it (`exclude_nodes`)",
        )


def _drop_repeated(graph: GraphProto, known: list[str]) -> None:
    """Remove duplicates: a weight that two nodes read is quantised twice, with the same values and names."""
    for index in reversed(range(len(known), len(graph.initializer))):
        if graph.initializer[index].name in known:
            del graph.initializer[index]


@contextlib.contextmanager
def explain_failure() -> Iterator[None]:
    """Silence the reference, and raise its errors as `StageError`."""
    for name in ("onnxruntime.quantization.matmul_nbits_quantizer", "neural_compressor", "onnx_ir"):
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        yield
    except PYTHON_ERRORS as cause:
        first = str(cause).partition("\n")[0][:300]
        raise StageError(
            "ONNX Runtime's weight quantiser does not support this model", details=(f"{type(cause).__name__}: {first}",)
        ) from cause
