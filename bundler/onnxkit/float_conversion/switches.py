"""Build the model with switchable rounding: a switch for every pair of a value and a node that reads it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnxruntime.transformers.float16 import ALWAYS_FLOAT_INPUTS

from bundler.model.errors import StageError
from bundler.onnxkit.float_conversion.converter import Conversion
from bundler.onnxkit.float_conversion.narrow import GREATEST, ONNX_TYPES
from bundler.onnxkit.float_conversion.value_types import float_values
from bundler.onnxkit.structure import (
    captured_names,
    free_prefix,
    lift_constants,
    rename_captures,
    standard_opset,
    subgraphs,
)

_MIN_OPSET: Final = 9
"""The first opset with `Where`."""


class Edge(NamedTuple):
    """A value and a node that reads it; None for the reader of the model's outputs."""

    value: str
    reader: str | None


@dataclass(slots=True)
class Wiring:
    """`nodes` may be converted, in the model's order; `blocked` never are. `made` and `read` are the float values that
    each node computes, and those other than weights that it reads; `makers` is the inverse of `made`. `averages` are
    what each `ReduceMean` that may be converted reads and computes. `outputs` are the
    values of the model's outputs, `switches` the inputs that select whether an edge is rounded.
    """

    nodes: list[str] = field(default_factory=list)
    blocked: set[str] = field(default_factory=set)
    made: dict[str, list[str]] = field(default_factory=dict)
    read: dict[str, list[str]] = field(default_factory=dict)
    makers: dict[str, str] = field(default_factory=dict)
    weights: dict[str, list[str]] = field(default_factory=dict)
    """The readers of each weight."""
    averages: dict[str, tuple[str, str]] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    switches: dict[Edge, str] = field(default_factory=dict)

    def readers(self) -> dict[str, list[str]]:
        """The nodes that read each value."""
        found: dict[str, list[str]] = {}
        for edge in self.switches:
            if edge.reader is not None:
                found.setdefault(edge.value, []).append(edge.reader)
        return found


def wire_switches(model: ModelProto, conversion: Conversion, clamped: Collection[str]) -> tuple[ModelProto, Wiring]:
    """A copy of the model with its switches. Raises `StageError` for an opset without `Where`."""
    opset = standard_opset(model)
    if opset < _MIN_OPSET:
        raise StageError(f"a model of opset {opset} cannot be searched", hint="export it with opset 13 or newer")
    copy = deepcopy(model)
    lift_constants(copy.graph)
    builder = _Builder(copy, conversion, set(clamped))
    builder.build()
    return copy, builder.wiring


class _Builder:
    def __init__(self, model: ModelProto, conversion: Conversion, clamped: set[str]) -> None:
        self.graph, self.conversion, self.clamped = model.graph, conversion, clamped
        self.floats = float_values(model)
        self.mark = free_prefix(model, "emulated ")
        self.wiring = Wiring()
        self.rounded: set[str] = set()
        self.added: list[NodeProto] = []

    def build(self) -> None:
        weights = {tensor.name for tensor in self.graph.initializer} & self.floats
        self.wiring.weights = {name: [] for name in weights}
        for node in list(self.graph.node):
            self._wire_node(node)
        self._wire_outputs()
        self.graph.node.extend(self.added)
        limit = GREATEST[self.conversion.kind]
        for sign, value in (("least", -limit), ("greatest", limit)):
            self.graph.initializer.append(numpy_helper.from_array(np.array(value, np.float32), f"{self.mark}{sign}"))

    def _wire_node(self, node: NodeProto) -> None:
        made = [name for name in node.output if name in self.floats]
        fixed = ALWAYS_FLOAT_INPUTS.get(node.op_type, ())
        read = {name for place, name in enumerate(node.input) if name in self.floats and place not in fixed}
        captured = set[str]().union(*map(captured_names, subgraphs(node))) & self.floats
        if not (made or read or captured):
            return
        if node.op_type in self.conversion.block_operators or node.name in self.conversion.block_nodes:
            self.wiring.blocked.add(node.name)
        elif not captured and not any(True for _ in subgraphs(node)):
            self.wiring.nodes.append(node.name)
            if node.op_type == "ReduceMean":
                self.wiring.averages[node.name] = node.input[0], node.output[0]
        self.wiring.made[node.name] = made
        self.wiring.makers.update(dict.fromkeys(made, node.name))
        self.wiring.read[node.name] = sorted((read | captured) - self.wiring.weights.keys())
        names = {name: self._switch(Edge(name, node.name)) for name in sorted(read | captured)}
        for place, name in enumerate(node.input):
            if name in names and place not in fixed:
                node.input[place] = names[name]
        for inner in subgraphs(node):
            rename_captures(inner, names)

    def _wire_outputs(self) -> None:
        declared = [info.name for info in self.graph.output]
        for name in declared:
            self.wiring.outputs[name] = self._switch(Edge(name, None)) if name in self.floats else name
        wanted = [*self.wiring.outputs.values(), *(name for made in self.wiring.made.values() for name in made)]
        for name in dict.fromkeys(wanted):
            if name not in declared:
                self.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))

    def _switch(self, edge: Edge) -> str:
        """The value that the edge's reader receives."""
        if edge.value in self.wiring.weights and edge.reader is not None:
            self.wiring.weights[edge.value].append(edge.reader)
        if edge.value not in self.rounded:
            self.rounded.add(edge.value)
            self.added.extend(self._round(edge.value))
        place = len(self.wiring.switches)
        switch, result = f"{self.mark}switch {place}", f"{self.mark}edge {place}"
        self.wiring.switches[edge] = switch
        self.graph.input.append(helper.make_tensor_value_info(switch, TensorProto.BOOL, []))
        self.added.append(helper.make_node("Where", [switch, f"{self.mark}rounded {edge.value}", edge.value], [result]))
        return result

    def _round(self, name: str) -> Iterator[NodeProto]:
        narrow, source = f"{self.mark}narrow {name}", name
        if name in self.clamped:
            low, clamped = f"{self.mark}low {name}", f"{self.mark}clamped {name}"
            yield helper.make_node("Max", [name, f"{self.mark}least"], [low])
            yield helper.make_node("Min", [low, f"{self.mark}greatest"], [clamped])
            source = clamped
        yield helper.make_node("Cast", [source], [narrow], to=ONNX_TYPES[self.conversion.kind])
        yield helper.make_node("Cast", [narrow], [f"{self.mark}rounded {name}"], to=TensorProto.FLOAT)
