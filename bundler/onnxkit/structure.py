"""Read a model's structure without its weights, and explain why a file is not a model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from google.protobuf.message import DecodeError
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from bundler.model.errors import ModelError
from bundler.onnxkit.elements import element_of_onnx, storage_bytes
from bundler.onnxkit.slim import WireError, read_without_weights

_SNIFF_BYTES: Final = 512

_SIGNATURES: Final = (
    (0, b"version https://git-lfs", "a Git LFS pointer, not the model itself", "fetch the real file: `git lfs pull`"),
    (4, b"ORTM", "already in ORT format", "give the original ONNX file"),
    (4, b"TFL3", "a TensorFlow Lite model", "convert it with tf2onnx and give the ONNX file"),
    (0, b"PK\x03\x04", "a ZIP archive (PyTorch checkpoints are ZIP archives, too)", "export the model to ONNX first"),
    (0, b"\x89HDF", "an HDF5 file (Keras)", "export the model to ONNX first"),
    (0, b"\x1f\x8b", "compressed with gzip", "unpack it first"),
    (0, b"\x80\x02", "a Python pickle (an old PyTorch checkpoint)", "export the model to ONNX first"),
)
"""Files that are not ONNX models: offset, first bytes, what it is, what to do."""
PYTHON_ERRORS: Final = (ValueError, TypeError, LookupError, AttributeError, RuntimeError, AssertionError)
"""Errors that a Python library raises on a graph that it does not support."""
_RANDOM: Final = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
"""The standard ONNX operators with random results."""


def read_structure(path: Path, *, link: bool = False) -> ModelProto:
    """The model at `path` without tensor payloads over 4 KiB and without external data. Raises `ModelError`.

    With `link`, omitted raw payloads are declared as external data in the file at `path` itself.
    """
    if not path.is_file():
        raise ModelError(f"{path.name} is not a file", hint="give the path of an ONNX file")
    try:
        model: ModelProto = ModelProto.FromString(read_without_weights(path, link=link))
    except (WireError, DecodeError) as error:
        raise _unreadable(path, error) from error
    if not model.ir_version or not model.HasField("graph"):
        raise _unreadable(path, None)
    return model


def _unreadable(path: Path, error: Exception | None) -> ModelError:
    with path.open("rb") as stream:
        head = stream.read(_SNIFF_BYTES)
    if not head:
        return ModelError(f"{path.name} is empty", hint="export or download the model again")
    for offset, signature, what, hint in _SIGNATURES:
        if head[offset:].startswith(signature):
            return ModelError(f"{path.name} is not an ONNX file: it is {what}", hint=hint)
    if head.lstrip()[:1] == b"<":
        hint = "the download was probably an error page; download the file again"
        return ModelError(f"{path.name} is not an ONNX file: it is an HTML or XML page", hint=hint)
    if all(byte >= ord(" ") or byte in b"\t\r\n" for byte in head):
        return ModelError(f"{path.name} is not an ONNX file: it is text", hint="give the binary ONNX file")
    if isinstance(error, WireError) and error.truncated and head[:1] == b"\x08":
        hint = "the file is incomplete after an interrupted download or on a full disk: export or download it again"
        return ModelError(f"{path.name} is truncated", details=(str(error),), hint=hint)
    details = (str(error),) if error else ("it has no graph",)
    return ModelError(f"{path.name} is not an ONNX file", details=details, hint="give a model in ONNX format")


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs in a node's attributes: bodies of loops, branches of conditions."""
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def defined_names(graph: GraphProto) -> set[str]:
    """The values that a graph itself defines: its inputs, its weights and the outputs of its nodes."""
    names = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    names |= {sparse.values.name for sparse in graph.sparse_initializer}
    return names | {name for node in graph.node for name in node.output}


def captured_names(graph: GraphProto) -> set[str]:
    """The outer values that a subgraph reads, those of its own subgraphs included."""
    names = {value.name for value in graph.output}.union(*map(read_names, graph.node))
    return names - defined_names(graph)


def read_names(node: NodeProto) -> set[str]:
    """The values that a node reads, outer values of its subgraphs included."""
    return {name for name in node.input if name}.union(*map(captured_names, subgraphs(node)))


def rename_captures(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Rename outer values in everything that a subgraph reads."""
    own = defined_names(graph)
    seen = {old: new for old, new in names.items() if old not in own}
    for node in graph.node:
        node.input[:] = [seen.get(name, name) for name in node.input]
        for inner in subgraphs(node):
            rename_captures(inner, seen)
    for value in graph.output:
        value.name = seen.get(value.name, value.name)


def free_prefix(model: ModelProto, prefix: str) -> str:
    """`prefix`, made longer until no name in the model begins with it."""
    taken = {name for node in iterate_nodes(model) for name in (*node.input, *node.output)}
    taken |= {info.name for graph in iterate_graphs(model) for info in (*graph.input, *graph.output)}
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return prefix


def iterate_graphs(model: ModelProto) -> Iterator[GraphProto]:
    """The main graph and every graph nested in it or in the model's functions."""
    yield from _nested(model.graph)
    for function in model.functions:
        for node in function.node:
            yield from iterate_nested(node)


def iterate_nested(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs in a node's attributes, and those nested in them."""
    for graph in subgraphs(node):
        yield from _nested(graph)


def _nested(graph: GraphProto) -> Iterator[GraphProto]:
    yield graph
    for node in graph.node:
        yield from iterate_nested(node)


def iterate_nodes(model: ModelProto) -> Iterator[NodeProto]:
    """Every node of a model, subgraphs and functions included."""
    for function in model.functions:
        yield from function.node
    for graph in iterate_graphs(model):
        yield from graph.node


def iterate_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor in the file: initializers, the parts of sparse ones, attributes."""
    for graph in iterate_graphs(model):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
    for node in iterate_nodes(model):
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                yield attribute.t
            yield from attribute.tensors


def find_doubles(model: ModelProto) -> tuple[str, ...]:
    """What brings float64 into a graph: inputs, outputs, weights and the results of casts, by name."""
    ports = (*model.graph.input, *model.graph.output)
    return tuple(
        dict.fromkeys(
            (
                *(port.name for port in ports if port.type.tensor_type.elem_type == TensorProto.DOUBLE),
                *(tensor.name for tensor in iterate_tensors(model) if tensor.data_type == TensorProto.DOUBLE),
                *(node.output[0] for node in iterate_nodes(model) if _casts_to_double(node)),
            )
        )
    )


def _casts_to_double(node: NodeProto) -> bool:
    return node.op_type == "Cast" and any(item.name == "to" and item.i == TensorProto.DOUBLE for item in node.attribute)


def has_external_data(model: ModelProto) -> bool:
    """Whether the data of a tensor is in another file."""
    return any(tensor.data_location == TensorProto.EXTERNAL for tensor in iterate_tensors(model))


def lift_constants(graph: GraphProto, wanted: Collection[str] | None = None) -> None:
    """Turn Constant nodes with a tensor into initializers; with `wanted`, only those of these names."""
    for index in reversed(range(len(graph.node))):
        node = graph.node[index]
        if node.op_type != "Constant" or (wanted is not None and node.output[0] not in wanted):
            continue
        if (value := constant_tensor(node)) is not None:
            graph.initializer.add().CopyFrom(value)
            graph.initializer[-1].name = node.output[0]
            del graph.node[index]


def constant_tensor(node: NodeProto) -> TensorProto | None:
    """The tensor of a Constant node, or None."""
    return next((item.t for item in node.attribute if item.type == AttributeProto.TENSOR), None)


def external_names(model: ModelProto) -> tuple[str, ...]:
    """The files with external data, relative to the model's folder, sorted. Raises `ModelError` for one outside."""
    external = (tensor for tensor in iterate_tensors(model) if tensor.data_location == TensorProto.EXTERNAL)
    names = {entry.value for tensor in external for entry in tensor.external_data if entry.key == "location"}
    if any(Path(name).is_absolute() or ".." in Path(name).parts for name in names):
        raise ModelError("the model has weights outside its own folder", hint="save it again with its data next to it")
    return tuple(sorted(names))


def read_constant(tensor: TensorProto) -> np.ndarray | None:
    """The values of a tensor that contains all its data; None for all others: external data (the library would look for
    its file in the current folder), data that was not read, or data that does not fit the declared type and sizes.
    """
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        return None
    try:
        values: np.ndarray = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError):  # malformed tensors
        return None
    return values


def tensor_bytes(tensor: TensorProto) -> int:
    """Bytes of a tensor in memory; for text, in the file."""
    if tensor.data_type == TensorProto.STRING:
        return sum(len(item) for item in tensor.string_data)
    return storage_bytes(element_of_onnx(tensor.data_type), math.prod(tensor.dims))


def list_bytes(model: ModelProto) -> int:
    """Bytes in the file of all lists of numbers and texts in attributes: a forest of trees has no tensors."""
    kinds = (AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS)
    attributes = (attribute for node in iterate_nodes(model) for attribute in node.attribute)
    return sum(attribute.ByteSize() for attribute in attributes if attribute.type in kinds)


def count_listed(model: ModelProto) -> int:
    """The numbers in attributes' lists, as thresholds and coefficients: models of ai.onnx.ml may have no others.

    Of a tree, `nodes_hitrates` are statistics.
    """
    attributes = (attribute for node in iterate_nodes(model) for attribute in node.attribute)
    return sum(len(attribute.floats) for attribute in attributes if attribute.name != "nodes_hitrates")


def integer_attribute(node: NodeProto, name: str, default: int = 0) -> int:
    """A node's attribute `name`, or `default` where it has none."""
    return next((int(item.i) for item in node.attribute if item.name == name), default)


def standard_opset(model: ModelProto) -> int:
    """The version of the standard ONNX opset, or 0."""
    return max((int(entry.version) for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=0)


def keep_only(items: Any, wanted: Callable[[Any], bool]) -> None:
    """Delete all others from a repeated field in place: rebuilding it would copy every weight."""
    for index in reversed([i for i, item in enumerate(items) if not wanted(item)]):
        del items[index]


def qualified_name(item: NodeProto | FunctionProto) -> str:
    """`Conv`, `com.microsoft.Gelu`: an operator with its domain, unless that is the standard one."""
    name = item.op_type if isinstance(item, NodeProto) else item.name
    return name if item.domain in ("", "ai.onnx") else f"{item.domain}.{name}"


def random_operators(model: ModelProto) -> tuple[str, ...]:
    """Operators with random results; Dropout only if it can be in training mode."""
    names = {node.op_type for node in iterate_nodes(model) if node.op_type in _RANDOM}
    trains = any(node.op_type == "Dropout" and any(node.input[2:]) for node in iterate_nodes(model))
    return tuple(sorted(names | ({"Dropout"} if trains else set())))


def count_operators(model: ModelProto) -> dict[str, int]:
    """The number of nodes by qualified operator name, in alphabetical order."""
    return dict(sorted(Counter(qualified_name(node) for node in iterate_nodes(model)).items()))
