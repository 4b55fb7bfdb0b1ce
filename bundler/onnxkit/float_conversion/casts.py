"""Move the converter's casts to the right graphs.

The reference writes every cast into the main graph, once for each reading node: two nodes that read one value
define the same name twice, a value of a branch is cast outside of it, and a value between two 32-bit nodes is rounded,
or overflows. Models without these problems are not changed.
"""

from __future__ import annotations

from copy import deepcopy

from onnx import ModelProto, NodeProto, TensorProto

from bundler.onnxkit.structure import defined_names, integer_attribute, iterate_graphs, iterate_nodes, keep_only


def tidy_casts(model: ModelProto, inserted: int) -> None:
    """Repair a converted model in place; its main graph ends with `inserted` nodes of the converter."""
    nodes = list(model.graph.node)
    casts = deepcopy(nodes[len(nodes) - inserted :]) if inserted else []
    del model.graph.node[len(nodes) - inserted :]
    _place_once(model, casts)
    _join(model, {cast.output[0] for cast in casts})


def _place_once(model: ModelProto, casts: list[NodeProto]) -> None:
    """Move each cast to the graph that computes its input, if that is not the main one, without duplicates."""
    homes = {name: graph for graph in iterate_graphs(model) for name in defined_names(graph)}
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


def _join(model: ModelProto, made: set[str]) -> None:
    """Remove pairs of casts: a reader of a value that was narrowed and widened again reads the original wide value."""
    casts = [node for node in iterate_nodes(model) if node.op_type == "Cast" and node.output[0] in made]
    narrowed = {cast.output[0]: cast.input[0] for cast in casts if not _widens(cast)}
    pairs = [(narrowed[cast.input[0]], cast.output[0]) for cast in casts if cast.input[0] in narrowed and _widens(cast)]
    outputs = {info.name for graph in iterate_graphs(model) for info in graph.output}
    inputs = {info.name for graph in iterate_graphs(model) for info in graph.input}
    for wide, again in pairs:
        if again not in outputs:
            _rename_reads(model, again, wide)
        elif wide in inputs or wide in outputs:
            _bypass(model, wide, again)
        else:
            _rename_reads(model, wide, again)
            _rename_writes(model, wide, again)


def _widens(cast: NodeProto) -> bool:
    return integer_attribute(cast, "to") == TensorProto.FLOAT


def _rename_reads(model: ModelProto, old: str, new: str) -> None:
    for node in iterate_nodes(model):
        node.input[:] = [new if name == old else name for name in node.input]


def _bypass(model: ModelProto, wide: str, again: str) -> None:
    """For an output that is an input, the cast becomes an Identity node."""
    for node in iterate_nodes(model):
        if again in node.output:
            node.op_type = "Identity"
            node.input[0] = wide
            del node.attribute[:]


def _rename_writes(model: ModelProto, wide: str, again: str) -> None:
    """Let the node that computes the wide value write the graph's output, and remove the second cast."""
    for graph in iterate_graphs(model):
        keep_only(graph.node, lambda node: list(node.output) != [again])
        for node in graph.node:
            node.output[:] = [again if name == wide else name for name in node.output]
