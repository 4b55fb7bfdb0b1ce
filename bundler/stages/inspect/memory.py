"""Estimate the memory of a run: weights plus the largest sum of live activations."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import onnx
from onnx import GraphProto, ModelProto, ValueInfoProto

from bundler.onnxkit.elements import element_of_onnx, storage_bytes
from bundler.onnxkit.structure import subgraphs

_MAX_NODES: Final = 20_000
"""Limit of nodes: shape inference of larger graphs takes too long for an estimate."""

_MAX_INFERENCE_BYTES: Final = 256 << 20
"""Memory of shape inference, which reads no weights, for an estimate. At most 12 MB in 105 real models."""


def estimate_peak_memory(model: ModelProto, weight_bytes: int) -> int | None:
    """Bytes at batch size one, or None where a shape is unknown. `model` has sorted nodes and is changed here."""
    if len(model.graph.node) > _MAX_NODES or not _fix_batch(model.graph):
        return None
    try:
        with _bounded_memory():
            graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError, MemoryError):
        return None
    sizes = {info.name: _bytes(info) for info in (*graph.input, *graph.value_info, *graph.output)}
    activations = _peak_of_live_values(graph, sizes)
    return None if activations is None else weight_bytes + activations


@contextmanager
def _bounded_memory() -> Iterator[None]:
    """Shape inference computes small constants, and holds every rank: a `Range` of a few bytes asks for all memory."""
    if sys.platform != "linux":  # elsewhere, only the worker's own limit holds
        yield
        return
    import resource  # noqa: PLC0415 - not on Windows

    limits = resource.getrlimit(resource.RLIMIT_DATA)
    status = Path("/proc/self/status").read_text("utf-8")
    bound = int(status.partition("VmData:")[2].split()[0]) * 1024 + _MAX_INFERENCE_BYTES
    kept = [limit for limit in limits if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(bound, *kept) if kept else bound, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, limits)


def _fix_batch(graph: GraphProto) -> bool:
    """Set the leading dynamic dimension of each input to one; False where another dimension is dynamic as well."""
    defaults = {tensor.name for tensor in graph.initializer}
    for info in graph.input:
        if info.name in defaults:
            continue
        if not info.type.HasField("tensor_type") or not info.type.tensor_type.HasField("shape"):
            return False
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value"):
                if axis:
                    return False
                dim.dim_value = 1
    # Recorded shapes of other sizes would contradict the inferred ones.
    del graph.value_info[:]
    for info in graph.output:
        info.type.tensor_type.ClearField("shape")
    return True


def _bytes(info: ValueInfoProto) -> int | None:
    tensor = info.type.tensor_type
    if not tensor.elem_type or not tensor.HasField("shape"):
        return None
    if any(not dim.HasField("dim_value") for dim in tensor.shape.dim):
        return None
    return storage_bytes(element_of_onnx(tensor.elem_type), math.prod(dim.dim_value for dim in tensor.shape.dim))


def _peak_of_live_values(graph: GraphProto, sizes: dict[str, int | None]) -> int | None:
    last_use = {info.name: len(graph.node) for info in graph.output}
    for index, node in enumerate(graph.node):
        for name in node.input:
            last_use[name] = max(last_use.get(name, 0), index)
        if any(True for _ in subgraphs(node)):
            return None
    live = sum(sizes.get(info.name) or 0 for info in graph.input if info.name in last_use)
    peak = live
    ending: dict[int, list[str]] = {}
    for name, index in last_use.items():
        ending.setdefault(index, []).append(name)
    alive = {info.name for info in graph.input}
    for index, node in enumerate(graph.node):
        for name in node.output:
            if name and name in last_use:
                size = sizes.get(name)
                if size is None:
                    return None
                live += size
                alive.add(name)
        peak = max(peak, live)
        live -= sum(sizes.get(name) or 0 for name in ending.get(index, ()) if name in alive)
    return peak
