"""The same model, written differently: all that has no meaning is permuted or renamed."""

from __future__ import annotations

import random

from onnx import GraphProto, ModelProto, NodeProto


def shuffle(model: ModelProto, seed: int) -> ModelProto:
    """An isomorphic model: nodes in another order that still runs, initializers and attributes permuted, every inner
    value and node renamed.
    """
    result = ModelProto()
    result.CopyFrom(model)
    chance = random.Random(seed)  # noqa: S311 - a test's shuffle guards nothing
    graph = result.graph
    kept = {value.name for value in (*graph.input, *graph.output)}
    names = {name: f"n{chance.random()}" for name in _inner_names(graph) if name not in kept}
    _replace_nodes(graph, _random_order(graph, chance))
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        node.name = f"node{chance.random()}"
        attributes = [type(item).FromString(item.SerializeToString()) for item in node.attribute]
        chance.shuffle(attributes)
        del node.attribute[:]
        node.attribute.extend(attributes)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rename_captures(attribute.g, names)
    tensors = [type(item).FromString(item.SerializeToString()) for item in graph.initializer]
    chance.shuffle(tensors)
    del graph.initializer[:]
    graph.initializer.extend(tensors)
    for tensor in graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    del graph.value_info[:]
    return result


def _inner_names(graph: GraphProto) -> list[str]:
    return [name for node in graph.node for name in node.output if name] + [item.name for item in graph.initializer]


def _rename_captures(graph: GraphProto, names: dict[str, str]) -> None:
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]


def _random_order(graph: GraphProto, chance: random.Random) -> list[NodeProto]:
    waiting = [NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    made_here = {name for node in waiting for name in node.output}
    done: set[str] = set()
    order = []
    while waiting:
        ready = [node for node in waiting if all(name in done or name not in made_here for name in _reads(node))]
        node = chance.choice(ready)
        waiting.remove(node)
        order.append(node)
        done.update(node.output)
    return order


def _reads(node: NodeProto) -> list[str]:
    inner = [name for item in node.attribute if item.HasField("g") for n in item.g.node for name in n.input]
    return [*node.input, *inner]


def _replace_nodes(graph: GraphProto, nodes: list[NodeProto]) -> None:
    del graph.node[:]
    graph.node.extend(nodes)
