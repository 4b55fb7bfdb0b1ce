"""Models with one thing wrong, or a few: what a bad exporter, a broken disk or somebody with bad intentions hands in.

Every mutant follows from its seed alone, so a finding is repeated by its number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from tests.support import encoders, models

SIZES: Final = (-1, 0, 1, 2, 7, 1 << 20, (1 << 62) - 1, -(1 << 63))
LONG: Final = "n" * 20_000
NAMES: Final = ("", "y", "x", "a b", "\u202ename", LONG, "\x1b[31mred", "line\nbreak", "../../etc/passwd", "\0")
BASES: Final[dict[str, Callable[[], ModelProto]]] = {
    "cnn": models.cnn,
    "mlp": models.mlp,
    "tokens": models.token_encoder,
    "loop": models.loop_model,
    "if": models.choosing,
    "function": models.local_function,
    "sequence": models.sequence_output,
    "sequence-input": models.sequence_input,
    "optional": models.optional_input,
    "strings": models.strings,
    "overridable": models.overridable,
    "redundant": models.redundant,
    "scaler": models.scaler_pipeline,
    "random": models.random_model,
    "old": models.old_ir,
    "contrib": models.contrib,
    "encoder": encoders.tiny_encoder,
}

Mutation = Callable[[ModelProto, Random], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A file, and what was done to the model that it was."""

    path: Path
    story: str


def write_mutant(seed: int, folder: Path, bases: Mapping[str, Callable[[], ModelProto]] = BASES) -> Mutant:
    """The mutant of this number, in `folder`, with its external data where it has some."""
    rng = Random(seed)  # noqa: S311 - the same mutant for the same number
    folder.mkdir(parents=True, exist_ok=True)
    base = rng.choice(sorted(bases))
    model = bases[base]()
    steps = []
    outside = rng.random() < 0.15
    for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
        name = rng.choice(sorted(MUTATIONS))
        steps.append(name)
        try:
            MUTATIONS[name](model, rng)
        except (ValueError, TypeError, IndexError, DecodeError):  # this model has nothing of the kind
            steps[-1] += " (not possible)"
    path = folder / "model.onnx"
    if outside:
        steps.append(_save_outside(model, path, rng))
    else:
        path.write_bytes(model.SerializeToString())
    if rng.random() < 0.15:
        steps.append(_break_bytes(path, rng))
    return Mutant(path=path, story=f"{seed}: {base}: {', '.join(steps)}")


def _graphs(model: ModelProto) -> list[GraphProto]:
    found = [model.graph]
    for graph in found:
        found += [item.g for node in graph.node for item in node.attribute if item.type == AttributeProto.GRAPH]
    return found


def _nodes(model: ModelProto) -> list[NodeProto]:
    return [node for graph in _graphs(model) for node in graph.node] + [
        node for function in model.functions for node in function.node
    ]


def _tensors(model: ModelProto) -> list[TensorProto]:
    held = [tensor for graph in _graphs(model) for tensor in graph.initializer]
    return held + [item.t for node in _nodes(model) for item in node.attribute if item.type == AttributeProto.TENSOR]


def _ports(model: ModelProto) -> list[onnx.ValueInfoProto]:
    return [value for graph in _graphs(model) for value in (*graph.input, *graph.output, *graph.value_info)]


def change_dimension(model: ModelProto, rng: Random) -> None:
    dims = rng.choice(_ports(model)).type.tensor_type.shape.dim
    dim = rng.choice(dims)
    if rng.random() < 0.5:
        dim.dim_value = rng.choice(SIZES)
    else:
        dim.dim_param = rng.choice(NAMES)


def change_rank(model: ModelProto, rng: Random) -> None:
    dims = rng.choice(_ports(model)).type.tensor_type.shape.dim
    if rng.random() < 0.5 and dims:
        del dims[rng.randrange(len(dims))]
    else:
        for _ in range(rng.choice((1, 2, 40))):
            dims.add().dim_value = 2


def change_type(model: ModelProto, rng: Random) -> None:
    rng.choice(_ports(model)).type.tensor_type.elem_type = rng.choice((0, *range(1, 26), 99))


def drop_type(model: ModelProto, rng: Random) -> None:
    rng.choice(_ports(model)).ClearField("type")


def change_tensor_dims(model: ModelProto, rng: Random) -> None:
    tensor = rng.choice(_tensors(model))
    if rng.random() < 0.4 or not tensor.dims:
        tensor.dims.append(rng.choice(SIZES))
    else:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(SIZES)


def change_tensor_type(model: ModelProto, rng: Random) -> None:
    rng.choice(_tensors(model)).data_type = rng.choice((0, *range(1, 26), 99))


def change_tensor_data(model: ModelProto, rng: Random) -> None:
    tensor = rng.choice(_tensors(model))
    kind = rng.randrange(5)
    if kind == 0:
        tensor.raw_data = tensor.raw_data[: rng.randrange(9)]
    elif kind == 1:
        tensor.raw_data += b"more"
    elif kind == 2:
        tensor.float_data.extend([1.0, 2.0])
    elif kind == 3:
        tensor.ClearField("raw_data")
    else:
        tensor.raw_data = b"\xff" * len(tensor.raw_data)


def externalise(model: ModelProto, rng: Random) -> None:
    """A tensor whose data is said to stand elsewhere."""
    tensor = rng.choice(_tensors(model))
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    places = ("w.bin", "../w.bin", "/etc/passwd", "/dev/zero", "model.onnx", ".", "", "a" * 300, "w\0.bin", "x/" * 3000)
    tensor.external_data.add(key="location", value=rng.choice(places))
    for key in ("offset", "length"):
        if rng.random() < 0.5:
            tensor.external_data.add(key=key, value=rng.choice(("0", "-1", "1e3", "9" * 30, "", "4096", "9" * 5000)))


def rename_value(model: ModelProto, rng: Random) -> None:
    node = rng.choice(_nodes(model))
    side = rng.choice((node.input, node.output))
    side[rng.randrange(len(side))] = rng.choice(NAMES)


def rename_port(model: ModelProto, rng: Random) -> None:
    rng.choice(_ports(model)).name = rng.choice(NAMES)


def rename_tensor(model: ModelProto, rng: Random) -> None:
    rng.choice(_tensors(model)).name = rng.choice(NAMES)


def rename_operator(model: ModelProto, rng: Random) -> None:
    names = ("", "Conv", "Reshape", "ConstantOfShape", "Gather", "Rely", "Loop", LONG, "\x1b[0m")
    rng.choice(_nodes(model)).op_type = rng.choice(names)


def change_domain(model: ModelProto, rng: Random) -> None:
    rng.choice(_nodes(model)).domain = rng.choice(("com.microsoft", "ai.onnx.ml", "ai.onnx", "x.y", "\n", "d" * 3000))


def change_attribute(model: ModelProto, rng: Random) -> None:
    """Another value or kind."""
    items = [item for node in _nodes(model) for item in node.attribute]
    item = rng.choice(items)
    kind = rng.randrange(6)
    if kind == 0:
        item.type = rng.choice(range(15))
    elif kind == 1:
        item.i = rng.choice(SIZES)
    elif kind == 2 and item.ints:
        item.ints[rng.randrange(len(item.ints))] = rng.choice(SIZES)
    elif kind == 3:
        item.name = rng.choice(NAMES)
    elif kind == 4:
        item.ref_attr_name = rng.choice(NAMES)
    else:
        item.f = rng.choice((float("nan"), float("inf"), -1.0))


def drop_attribute(model: ModelProto, rng: Random) -> None:
    node = rng.choice([node for node in _nodes(model) if node.attribute])
    del node.attribute[rng.randrange(len(node.attribute))]


def add_attribute(model: ModelProto, rng: Random) -> None:
    name = rng.choice(("axis", "axes", "to", "perm", "kernel_shape", "value", "strange", "", "body"))
    value = rng.choice((rng.choice(SIZES), 1.5, "text", [1, 2, -9], [0.5], b"\xff\xfe"))
    rng.choice(_nodes(model)).attribute.append(helper.make_attribute(name, value))


def drop_input(model: ModelProto, rng: Random) -> None:
    inputs = rng.choice(_nodes(model)).input
    del inputs[rng.randrange(len(inputs))]


def add_input(model: ModelProto, rng: Random) -> None:
    values = [name for node in _nodes(model) for name in (*node.input, *node.output)]
    rng.choice(_nodes(model)).input.append(rng.choice(values))


def swap_values(model: ModelProto, rng: Random) -> None:
    """A value from elsewhere: other shapes and types, or a cycle."""
    values = [name for node in _nodes(model) for name in (*node.input, *node.output)]
    inputs = rng.choice(_nodes(model)).input
    inputs[rng.randrange(len(inputs))] = rng.choice(values)


def drop_node(model: ModelProto, rng: Random) -> None:
    nodes = rng.choice(_graphs(model)).node
    del nodes[rng.randrange(len(nodes))]


def double_node(model: ModelProto, rng: Random) -> None:
    graph = rng.choice(_graphs(model))
    graph.node.append(rng.choice(graph.node))


def shuffle_nodes(model: ModelProto, rng: Random) -> None:
    graph = rng.choice(_graphs(model))
    nodes = [NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    rng.shuffle(nodes)
    del graph.node[:]
    graph.node.extend(nodes)


def drop_tensor(model: ModelProto, rng: Random) -> None:
    tensors = model.graph.initializer
    del tensors[rng.randrange(len(tensors))]


def double_tensor(model: ModelProto, rng: Random) -> None:
    model.graph.initializer.append(rng.choice(model.graph.initializer))


def drop_port(model: ModelProto, rng: Random) -> None:
    ports = rng.choice((model.graph.input, model.graph.output))
    del ports[rng.randrange(len(ports))]


def double_port(model: ModelProto, rng: Random) -> None:
    ports = rng.choice((model.graph.input, model.graph.output))
    ports.append(rng.choice(ports))


def change_opset(model: ModelProto, rng: Random) -> None:
    kind = rng.randrange(4)
    if kind == 0:
        model.opset_import[0].version = rng.choice((0, -1, 1, 5, 9, 13, 22, 99, *SIZES))
    elif kind == 1:
        del model.opset_import[:]
    elif kind == 2:
        model.opset_import.append(helper.make_opsetid(rng.choice(("", "ai.onnx", "x.y", "\x1b")), 3))
    else:
        model.ir_version = rng.choice((0, 1, 2, 3, 4, 99, -1))


def rename_everywhere(model: ModelProto, rng: Random) -> None:
    """A name that is strange, and right: each place that uses it says the same."""
    names = sorted({name for node in _nodes(model) for name in (*node.input, *node.output) if name})
    old, new = rng.choice(names), rng.choice(NAMES[4:])
    for node in _nodes(model):
        node.input[:] = [new if name == old else name for name in node.input]
        node.output[:] = [new if name == old else name for name in node.output]
    for item in (*_ports(model), *(tensor for graph in _graphs(model) for tensor in graph.initializer)):
        item.name = new if item.name == old else item.name


def change_integers(model: ModelProto, rng: Random) -> None:
    """Shapes, axes, bounds: numbers that a node takes from a tensor."""
    tensor = rng.choice([item for item in _tensors(model) if item.data_type == TensorProto.INT64])
    values = np.frombuffer(tensor.raw_data, np.int64).copy()
    values[rng.randrange(len(values))] = rng.choice((*SIZES, 3, -2, 100))
    tensor.raw_data = values.tobytes()


def change_weights(model: ModelProto, rng: Random) -> None:
    """Values that are no finite numbers, or very large ones."""
    tensor = rng.choice([item for item in _tensors(model) if item.data_type == TensorProto.FLOAT])
    values = np.frombuffer(tensor.raw_data, np.float32).copy()
    values[rng.randrange(len(values))] = rng.choice((np.nan, np.inf, 3e38, 1e-40))
    tensor.raw_data = values.tobytes()


def nudge_attribute(model: ModelProto, rng: Random) -> None:
    """A number that another model might have."""
    items = [item for node in _nodes(model) for item in node.attribute if item.ints or item.HasField("i")]
    item = rng.choice(items)
    if item.ints:
        item.ints[rng.randrange(len(item.ints))] += rng.choice((-1, 1, 2))
    else:
        item.i += rng.choice((-3, -1, 1, 2))


def use_other_operator(model: ModelProto, rng: Random) -> None:
    """One that takes as much and gives as much."""
    node = rng.choice([node for node in _nodes(model) if node.op_type in _LIKE])
    node.op_type = rng.choice(_LIKE[node.op_type])


_UNARY: Final = ("Relu", "Neg", "Exp", "Log", "Acosh", "Sqrt", "Shape", "Size", "NonZero", "Identity", "Erf", "Softmax")
_BINARY: Final = (
    "Add",
    "Mul",
    "Div",
    "MatMul",
    "Pow",
    "Mod",
    "Greater",
    "Reshape",
    "Expand",
    "Tile",
    "Gather",
    "Range",
)
_LIKE: Final = {name: group for group in (_UNARY, _BINARY) for name in group}


def add_training(model: ModelProto, _rng: Random) -> None:
    info = model.training_info.add()
    info.algorithm.CopyFrom(model.graph)


def add_constant_of_shape(model: ModelProto, rng: Random) -> None:
    """A value of a shape that stands in the file, well or badly."""
    shape = models.tensor("bad_shape", np.array([rng.choice(SIZES), 2], "int64"))
    if rng.random() < 0.4:
        shape.raw_data = shape.raw_data[:5]
    if rng.random() < 0.3:
        shape.data_type = TensorProto.FLOAT
    node = helper.make_node("ConstantOfShape", ["bad_shape"], ["made"])
    if rng.random() < 0.5:
        value = TensorProto(data_type=rng.choice((1, 7, 8, 99)))
        value.dims.extend(rng.choice(([], [1], [2], [-1])))
        node.attribute.append(helper.make_attribute("value", value))
    model.graph.initializer.append(shape)
    model.graph.node.insert(0, node)
    if rng.random() < 0.5:
        model.graph.output.append(models.value("made", [None, 2]))


def add_reshape(model: ModelProto, rng: Random) -> None:
    """A shape tensor in external data that may not be there: shape inference wants to read it."""
    shape = models.tensor("far_shape", np.array([-1], "int64"))
    if rng.random() < 0.7:
        shape.ClearField("raw_data")
        shape.data_location = TensorProto.EXTERNAL
        for key, text in (("location", "shape.bin"), ("length", rng.choice(("8", "4")))):
            shape.external_data.add(key=key, value=text)
    source = model.graph.input[0].name
    model.graph.initializer.append(shape)
    model.graph.node.append(helper.make_node("Reshape", [source, "far_shape"], ["flat_input"]))
    model.graph.output.append(models.value("flat_input", [None]))


def add_sparse(model: ModelProto, rng: Random) -> None:
    sparse = model.graph.sparse_initializer.add()
    sparse.values.CopyFrom(rng.choice(model.graph.initializer))
    sparse.dims.extend([rng.choice(SIZES), 3])
    if rng.random() < 0.6:
        sparse.indices.CopyFrom(models.tensor("", np.array([0, 99], "int64")))


def add_function(model: ModelProto, rng: Random) -> None:
    """A function that calls itself, or is called wrongly."""
    node = rng.choice(model.graph.node)
    call = helper.make_node(rng.choice(("Own", node.op_type)), ["a"], ["b"], domain="own")
    function = helper.make_function("own", "Own", ["a"], ["b"], [call], [helper.make_opsetid("own", 1)])
    model.functions.append(function)
    if rng.random() < 0.7:
        model.opset_import.append(helper.make_opsetid("own", 1))
    node.domain, node.op_type = "own", "Own"


def _branch(name: str, node: NodeProto) -> GraphProto:
    return helper.make_graph([node], name, [], [models.value(node.output[0], None)])


def nest_graphs(model: ModelProto, rng: Random) -> None:
    """Branches in branches, deep."""
    value = model.graph.output[0].name
    graph = _branch("n", helper.make_node("Identity", [value], ["n"]))
    for depth in range(rng.choice((1, 5, 20, 150))):
        other = _branch("other", helper.make_node("Identity", [value], [f"o{depth}"]))
        choice = helper.make_node("If", ["deep"], [f"m{depth}"], then_branch=graph, else_branch=other)
        graph = _branch("choice", choice)
    other = _branch("other", helper.make_node("Identity", [value], ["o"]))
    model.graph.node.append(helper.make_node("If", ["deep"], ["deepest"], then_branch=graph, else_branch=other))
    model.graph.input.append(models.value("deep", [], TensorProto.BOOL))
    model.graph.output.append(models.value("deepest", None))


def change_metadata(model: ModelProto, rng: Random) -> None:
    model.metadata_props.add(key=rng.choice(NAMES), value=rng.choice(NAMES))
    model.producer_name = rng.choice(NAMES)
    model.graph.doc_string = "d" * 10000


MUTATIONS: Final[dict[str, Mutation]] = {
    item.__name__: item
    for item in (
        change_dimension, change_rank, change_type, drop_type, change_tensor_dims, change_tensor_type,
        change_tensor_data, externalise, rename_value, rename_port, rename_tensor, rename_operator, change_domain,
        change_attribute, drop_attribute, add_attribute, drop_input, add_input, swap_values, drop_node, double_node,
        shuffle_nodes, drop_tensor, double_tensor, drop_port, double_port, change_opset, add_training,
        add_constant_of_shape, add_reshape, add_sparse, add_function, nest_graphs, change_metadata,
        rename_everywhere, rename_everywhere, change_integers, change_weights, nudge_attribute, use_other_operator,
    )
}  # fmt: skip


def _save_outside(model: ModelProto, path: Path, rng: Random) -> str:
    """All weights in a file beside the model; that file whole, cut, a link, a folder or away."""
    data = bytearray()
    for tensor in _tensors(model):
        if tensor.HasField("raw_data") and tensor.data_location != TensorProto.EXTERNAL:
            content = tensor.raw_data
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", "w.bin"), ("offset", len(data)), ("length", len(content))):
                tensor.external_data.add(key=key, value=str(value))
            data += content
    path.write_bytes(model.SerializeToString())
    place = path.with_name("w.bin")
    kind = rng.choice(("whole", "whole", "cut", "link", "folder", "away", "fifo"))
    if kind == "whole":
        place.write_bytes(data)
    elif kind == "cut":
        place.write_bytes(data[: len(data) // 2])
    elif kind == "link":
        path.with_name("real.bin").write_bytes(data)
        place.symlink_to("real.bin")
    elif kind == "folder":
        place.mkdir()
    elif kind == "fifo":
        os.mkfifo(place)
    return f"weights outside ({kind})"


def _break_bytes(path: Path, rng: Random) -> str:
    data = bytearray(path.read_bytes())
    kind = rng.choice(("cut", "flip", "flip", "flip", "insert", "latin", "latin"))
    if kind == "cut":
        del data[rng.randrange(len(data)) :]
    elif kind == "flip":
        for _ in range(rng.choice((1, 1, 3, 20))):
            data[_somewhere(data, rng)] ^= 1 << rng.randrange(8)
    elif kind == "insert":
        place = _somewhere(data, rng)
        data[place:place] = bytes(rng.randrange(256) for _ in range(3))
    else:  # a name that is no UTF-8, in each place that uses it
        words = sorted(set(re.findall(rb"[a-z_0-9.]{3,}", bytes(data[:4000]))))
        old = rng.choice(words)
        data = bytearray(bytes(data).replace(old, b"\xe9" * len(old)))
    path.write_bytes(data)
    return f"bytes ({kind})"


def _somewhere(data: bytearray, rng: Random) -> int:
    """Mostly in the structure, which stands before and behind the weights."""
    if rng.random() < 0.5:
        return rng.randrange(min(len(data), 400))
    return rng.randrange(len(data))
