"""Run ONNX Runtime's mobile checker, with the same result each time."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from onnx import GraphProto, ModelProto, NodeProto, TensorProto
from onnxruntime.tools.mobile_helpers import usability_checker as reference

from bundler.model.errors import StageError
from bundler.onnxkit.placement_facts import tidy
from bundler.onnxkit.structure import subgraphs
from bundler.stages.check_placement.spec import Options

_FUNCTION: Final = re.compile(r"check_[a-z0-9_]+_partitions")
_OPERATORS: Final = re.compile(r"([a-z0-9_]+\.md)?")
_MAX_VERDICT_LENGTH: Final = 400
_ERRORS: Final = (ValueError, KeyError, IndexError, TypeError, AttributeError, ZeroDivisionError, OSError)
"""Errors of the checker on a graph that it does not support."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The checker's result: `assigned` are the first outputs of the nodes that would be assigned to the provider."""

    info: Any
    assigned: Collection[str]
    suitable: str
    verdict: str
    caveats: tuple[str, ...]
    texts: frozenset[str] = frozenset()

    def reads_text(self, node: NodeProto) -> bool:
        """Whether the node's inputs or outputs are texts."""
        return not self.texts.isdisjoint((*node.input, *node.output))

    def knows(self, node: NodeProto) -> bool:
        """Whether the provider supports the operator at all."""
        return bool(self.info.supported_ops_checker.is_op_supported(node))


def estimate(model: ModelProto, asked: Options) -> Estimate:
    """The checker's result for a model with shapes. Raises `StageError` for a graph that it cannot read."""
    check = _find_function(asked)
    if _is_parallel(model.graph):  # the checker would ask for their shapes
        model.graph.value_info.extend(model.graph.output)
    try:
        with _in_order():
            info = check(model, require_fixed_input_sizes=True)
            suitable = info.suitability().name.lower()
            caveats = tuple(map(tidy, info.supported_ops_checker.get_caveats()))
            verdict = _read_verdict(info, asked.title)
            texts = _text_values(model)
            assigned = {
                node.output[0]
                for group in info.supported_groups
                for node in group
                if node.output and texts.isdisjoint((*node.input, *node.output))
            }
    except _ERRORS as cause:
        hint = "disable the check, or inspect the model: `bundler inspect MODEL`"
        details = (tidy(f"{type(cause).__name__}: {cause}"),)
        raise StageError("ONNX Runtime's mobile checker cannot read this model", details=details, hint=hint) from cause
    return Estimate(info, assigned, suitable, verdict, caveats, texts)


def _is_parallel(graph: GraphProto) -> bool:
    """Whether no node reads what another makes, as in a graph of two heads on its inputs."""
    outputs = [name for node in graph.node for name in node.output]
    made = set(outputs)
    return len(made) == len(outputs) and made.isdisjoint(name for node in graph.node for name in node.input)


def _text_values(model: ModelProto) -> frozenset[str]:
    """The values that hold texts, which no mobile provider computes: the checker knows operators, not types."""
    graph = model.graph
    values = {
        value.name
        for value in (*graph.input, *graph.value_info, *graph.output)
        if value.type.tensor_type.elem_type == TensorProto.STRING
    }
    return frozenset(values | {item.name for item in graph.initializer if item.data_type == TensorProto.STRING})


def _find_function(asked: Options) -> Callable[..., Any]:
    named = _FUNCTION.fullmatch(asked.function) and _OPERATORS.fullmatch(asked.operators)
    function = getattr(reference, asked.function, None) if named else None
    if function is None:
        raise StageError(f"ONNX Runtime's mobile checker has no {asked.function[:60]!r}", hint="disable the check")
    return partial(function, config_filename=asked.operators) if asked.operators else function


@dataclass(slots=True)
class _MessageLog:
    """A logger for the checker that keeps its messages."""

    lines: list[str] = field(default_factory=list)

    def info(self, text: str, *values: object) -> None:
        self.lines.append(text % values if values else text)

    def debug(self, text: str, *values: object) -> None:
        """Ignore debug messages: the nodes of every partition."""


def _read_verdict(info: Any, title: str) -> str:
    """The last line of the checker's own findings: its verdict."""
    ear = _MessageLog()
    info.print_analysis(ear, title)
    return tidy(ear.lines[-1], _MAX_VERDICT_LENGTH)


@contextlib.contextmanager
def _in_order() -> Iterator[None]:
    """Inside this context, the checker visits nodes in the graph's order.

    It keeps nodes in sets by their address in memory, so that the number of partitions is random, and it leaves that
    hash on the class.
    """
    before, original = NodeProto.__hash__, reference.get_producer_consumer_maps

    def ordered(graph: GraphProto) -> tuple[dict[NodeProto, list[NodeProto]], ...]:
        nodes = list(_all_nodes(graph))
        place = {id(node): index for index, node in enumerate(nodes)}
        maps = original(graph)
        return tuple(
            {node: sorted(others, key=lambda other: place[id(other)]) for node, others in found.items()}
            for found in maps
        )

    reference.get_producer_consumer_maps = ordered
    try:
        yield
    finally:
        reference.get_producer_consumer_maps = original
        NodeProto.__hash__ = before  # type: ignore[method-assign]


def _all_nodes(graph: GraphProto) -> Iterator[NodeProto]:
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from _all_nodes(inner)
