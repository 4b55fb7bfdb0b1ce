"""Move the converter's casts to the right graphs.

The reference writes every cast into the main graph, once for each reading node: two nodes that read one value
define the same name twice, a value of a branch is cast outside of it, and a value between two 32-bit nodes is rounded,
or overflows. Models without these problems are not changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from bundler.onnxkit.structure import iterate_graphs, iterate_nodes


def tidy_casts(model: ModelProto, inserted: int) -> None:
    """Repair a converted model in place; its main graph ends with `inserted` nodes of the converter."""
    nodes = list(model.graph.node)
    casts = [_copy(node) for node in nodes[len(nodes) - inserted :]] if inserted else []
    del model.graph.node[len(nodes) - inserted :]
    _place_once(model, casts)
    _join(model, {cast.output[0] for cast in casts})


def _copy(node: NodeProto) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy


def _place_once(model: ModelProto, casts: list[NodeProto]) -> None:
    """Move each cast to the graph that computes its input, if that is not the main one, without duplicates."""
    homes = {name: graph for graph in iterate_graphs(model) for name in _defined(graph)}
    pending, made = list(casts), set[str]()
    while pending:
        waiting = [cast for cast in pending if cast.input[0] not in homes]
        for cast in pending:
            if cast.input[0] in homes and cast.output[0] not in made:
                made.add(cast.output[0])
                home = homes[cast.input[0]]
                homes[cast.output[0]] = home
                home.node.append(cast)
        if len(waiting) == len(pending):
            model.graph.node.extend(waiting)  # of undefined values: loading the model will report them
            return
        pending = waiting


def _defined(graph: GraphProto) -> Iterator[str]:
    yield from (info.name for info in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    for node in graph.node:
        yield from (name for name in node.output if name)


@dataclass(frozen=True, slots=True)
class _Pair:
    """`wide` becomes `narrow` by one cast and `again` by the next."""

    wide: str
    again: str


def _join(model: ModelProto, made: set[str]) -> None:
    """Remove pairs of casts: a reader of a value that was narrowed and widened again reads the original wide value."""
    narrowed = {
        node.output[0]: node.input[0]
        for node in iterate_nodes(model)
        if node.op_type == "Cast" and node.output[0] in made and _target(node) != TensorProto.FLOAT
    }
    pairs = [
        _Pair(narrowed[node.input[0]], node.output[0])
        for node in iterate_nodes(model)
        if node.op_type == "Cast" and node.output[0] in made and node.input[0] in narrowed and _widens(node)
    ]
    outputs = {info.name for graph in iterate_graphs(model) for info in graph.output}
    inputs = {info.name for graph in iterate_graphs(model) for info in graph.input}
    for pair in pairs:
        if pair.again not in outputs:
            _rename_reads(model, pair.again, pair.wide)
        elif pair.wide in inputs or pair.wide in outputs:
            _bypass(model, pair)
        else:
            _rename_reads(model, pair.wide, pair.again)
            _rename_writes(model, pair)


def _widens(node: NodeProto) -> bool:
    return _target(node) == TensorProto.FLOAT


def _target(node: NodeProto) -> int:
    return next((item.i for item in node.attribute if item.name == "to"), 0)


def _rename_reads(model: ModelProto, old: str, new: str) -> None:
    for node in iterate_nodes(model):
        for place, name in enumerate(node.input):
            if name == old:
                node.input[place] = new


def _bypass(model: ModelProto, pair: _Pair) -> None:
    """For an output that is an input, the cast becomes an Identity node."""
    for node in iterate_nodes(model):
        if pair.again in node.output:
            node.op_type = "Identity"
            node.input[0] = pair.wide
            del node.attribute[:]


def _rename_writes(model: ModelProto, pair: _Pair) -> None:
    """Let the node that computes the wide value write the graph's output, and remove the second cast."""
    for graph in iterate_graphs(model):
        for index in reversed(range(len(graph.node))):
            node = graph.node[index]
            if list(node.output) == [pair.again]:
                del graph.node[index]
                continue
            for place, name in enumerate(node.output):
                if name == pair.wide:
                    node.output[place] = pair.again
