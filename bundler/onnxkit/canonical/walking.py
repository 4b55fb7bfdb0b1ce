"""The canonical order of a graph's nodes.

It is exact: every live node is reached from a graph output through *ordered* ports (outputs in order, then each
node's inputs in order). A depth-first post-order walk along these ports visits isomorphic graphs in the same order,
for all names of the nodes and all orders of the list. So there are no ties to break and no weights to hash, and
the cost is linear.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto

from bundler.model.errors import StageError

Scope = GraphProto | FunctionProto


def ordered_subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """The node's subgraphs, in the order of its attributes' names."""
    for attribute in sorted(node.attribute, key=lambda a: a.name):
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            yield from attribute.graphs


def formal_inputs(scope: Scope) -> list[str]:
    """Names of the inputs of a graph or function."""
    return list(scope.input) if isinstance(scope, FunctionProto) else [value.name for value in scope.input]


def formal_outputs(scope: Scope) -> list[str]:
    """Names of the outputs of a graph or function."""
    return list(scope.output) if isinstance(scope, FunctionProto) else [value.name for value in scope.output]


@dataclass(frozen=True, slots=True)
class Walk:
    """The canonical order of one graph's live nodes and read initializers, and the outer values that it reads."""

    scope: Scope
    """Kept alive, so that its identity stays unique: protobuf creates wrappers on demand."""
    order: list[NodeProto]
    used_initializers: list[str]
    captures: list[str]


class Walker:
    """Walks every graph of a model once: walks are cached by the identity of the graph."""

    def __init__(self) -> None:
        self._walks: dict[int, Walk] = {}

    def walk(self, scope: Scope) -> Walk:
        """The walk of one graph or function body. Raises `StageError` for a cycle."""
        done = self._walks.get(id(scope))
        if done is None:
            done = self._walks[id(scope)] = _Search(self, scope).run()
        return done

    def reads(self, node: NodeProto) -> list[str]:
        """All values that a node reads: its inputs by position, then the captures of its subgraphs in order."""
        names = [name for name in node.input if name]
        for graph in ordered_subgraphs(node):
            names.extend(self.walk(graph).captures)
        return names


class _Search:
    """One depth-first search, with an explicit stack: real models are deeper than Python's recursion limit."""

    def __init__(self, walker: Walker, scope: Scope) -> None:
        self.walker = walker
        self.scope = scope
        self.nodes = list(scope.node)
        self.producer = {name: index for index, node in enumerate(self.nodes) for name in node.output if name}
        self.initializers: set[str] = set()
        if isinstance(scope, GraphProto):
            tensors = (*scope.initializer, *(sparse.values for sparse in scope.sparse_initializer))
            self.initializers = {tensor.name for tensor in tensors}
        self.local = self.initializers.union(formal_inputs(scope))
        self.placed: dict[int, bool] = {}
        """Absent: not seen; False: being visited; True: placed."""
        self.stack: list[tuple[int, Iterator[str]]] = []
        self.order: list[NodeProto] = []
        self.used: dict[str, None] = {}
        self.captures: dict[str, None] = {}

    def run(self) -> Walk:
        for root in formal_outputs(self.scope):
            self._enter(root)
            while self.stack:
                self._advance()
        return Walk(self.scope, self.order, list(self.used), list(self.captures))

    def _advance(self) -> None:
        """Enter the top node's next unvisited source, or place the node when there is none."""
        index, pending = self.stack[-1]
        depth = len(self.stack)
        for name in pending:
            self._enter(name)
            if len(self.stack) > depth:
                return
        self.stack.pop()
        self.placed[index] = True
        self.order.append(self.nodes[index])

    def _enter(self, name: str) -> None:
        index = self.producer.get(name)
        if index is None:
            self._note_leaf(name)
        elif index not in self.placed:
            self.placed[index] = False
            self.stack.append((index, iter(self.walker.reads(self.nodes[index]))))
        elif not self.placed[index]:
            raise StageError(f"graph {self.scope.name!r} has a cycle through {name!r}")

    def _note_leaf(self, name: str) -> None:
        if name in self.initializers:
            self.used.setdefault(name)
        elif name not in self.local:
            self.captures.setdefault(name)
