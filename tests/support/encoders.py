"""BERT-class encoders, node for node as PyTorch's exporter writes them, so that transformer fusers recognise them.

The same seed gives the same bytes. `tiny_encoder` is for unit tests; `encoder(layers=12, width=768, hidden=3072,
heads=12, vocabulary=30522)` is BERT base, `encoder(layers=6, width=384, hidden=1536, heads=12, vocabulary=30522)` has
the 90 MB of MiniLM.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

AXES_AS_INPUT = 13
"""Opset from which on Unsqueeze takes its axes as an input."""
NORMALIZATION = 17
"""Opset from which on LayerNormalization is one operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes of an encoder. `sequence` is its dynamic dimension's name, or a size that is fixed (and `batch` with it).

    `split` says how the number of heads stands in the shape: as a number, or as -1 as newer exporters write it.
    """

    layers: int = 2
    width: int = 32
    hidden: int = 64
    heads: int = 4
    vocabulary: int = 60
    positions: int = 64
    opset: int = 14
    batch: str | int = "batch"
    sequence: str | int = "sequence"
    split: Literal["heads", "rest"] = "heads"
    gelu: Literal["erf", "none"] = "erf"


def tiny_encoder(**sizes: Any) -> ModelProto:
    """ids, mask and types [batch, sequence] -> last_hidden_state [batch, sequence, width], two layers of 32."""
    return encoder(**sizes)


def encoder(**sizes: Any) -> ModelProto:
    """An encoder of the sizes given; the rest as in `Shape`."""
    return Writer(shape=Shape(**sizes)).make()


def sentences(
    batch: int, sequence: int, *, vocabulary: int = 60, seed: int = 0, scattered: bool = False
) -> dict[str, np.ndarray]:
    """Ids, types and a mask: rows of growing padding on the right, or with `scattered` holes anywhere."""
    rng = np.random.default_rng(seed)
    lengths = np.maximum(1, sequence - np.arange(batch) * sequence // (2 * batch))
    mask = (np.arange(sequence) < lengths[:, None]).astype(np.int64)
    if scattered:
        mask = rng.integers(0, 2, (batch, sequence)).astype(np.int64)
        mask[:, -1] = 1
    return {
        "input_ids": rng.integers(1, vocabulary, (batch, sequence)).astype(np.int64),
        "attention_mask": mask,
        "token_type_ids": np.zeros((batch, sequence), np.int64),
    }


@dataclass
class Writer:
    shape: Shape
    nodes: list[NodeProto] = field(default_factory=list)
    weights: dict[str, TensorProto] = field(default_factory=dict)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def make(self) -> ModelProto:
        shape = self.shape
        sizes = [shape.batch, shape.sequence]
        state, mask = self._embed(), self._mask()
        for layer in range(shape.layers):
            state = self._layer(state, mask, f"encoder.layer.{layer}.")
        self.nodes[-1].output[0] = "last_hidden_state"
        names = ("input_ids", "attention_mask", "token_type_ids")
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, sizes) for name in names]
        output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*sizes, shape.width])
        graph = helper.make_graph(self.nodes, "main_graph", inputs, [output], list(self.weights.values()))
        imports = [helper.make_opsetid("", shape.opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8, producer_name="pytorch")

    def _embed(self) -> str:
        shape = self.shape
        length = self._node("Gather", self._node("Shape", "input_ids"), self._constant("one", 1), axis=0)
        ends = (self._constant("zeros", [0]), self._unsqueeze(length, 0), self._constant("ones", [1]))
        table = self.keep("position_ids", np.arange(shape.positions).reshape(1, -1))
        places = self._node("Slice", table, *ends, self._constant("ones", [1]))
        place = self._node("Gather", self.draw("position", shape.positions, shape.width), places, axis=0)
        kind = self._node("Gather", self.draw("type", 2, shape.width), "token_type_ids", axis=0)
        word = self._node("Gather", self.draw("word", shape.vocabulary, shape.width), "input_ids", axis=0)
        return self._normalise(self._node("Add", self._node("Add", word, kind), place), "embeddings.")

    def _mask(self) -> str:
        wide = self._unsqueeze(self._unsqueeze("attention_mask", 1), 2)
        kept = self._node("Cast", wide, to=TensorProto.FLOAT)
        away = self._number("lowest", float(np.finfo(np.float32).min))
        return self._node("Mul", self._node("Sub", self._number("unit", 1), kept), away)

    def _layer(self, state: str, mask: str, prefix: str) -> str:
        width, hidden = self.shape.width, self.shape.hidden
        attended = self._linear(self._attend(state, mask, f"{prefix}self."), f"{prefix}out.", width, width)
        state = self._normalise(self._node("Add", attended, state), f"{prefix}attention.")
        inner = self._linear(state, f"{prefix}up.", width, hidden)
        outer = self._linear(self._gelu(inner), f"{prefix}down.", hidden, width)
        return self._normalise(self._node("Add", outer, state), f"{prefix}output.")

    def _attend(self, state: str, mask: str, prefix: str) -> str:
        width, heads = self.shape.width, self.shape.heads
        split = self._split(state)
        key = self._head(state, split, f"{prefix}key.", [0, 2, 3, 1])
        query = self._head(state, split, f"{prefix}query.", [0, 2, 1, 3])
        scale = self._number("scale", (width // heads) ** 0.5)
        scores = self._node("Add", self._node("Div", self._node("MatMul", query, key), scale), mask)
        value = self._head(state, split, f"{prefix}value.", [0, 2, 1, 3])
        mixed = self._node("MatMul", self._node("Softmax", scores, axis=-1), value)
        return self._node(
            "Reshape", self._node("Transpose", mixed, perm=[0, 2, 1, 3]), self._constant("join", [0, 0, width])
        )

    def _split(self, state: str) -> str:
        heads, size = self.shape.heads, self.shape.width // self.shape.heads
        batch = self._size(state, 0)
        if self.shape.split == "heads":
            ends = (self._constant("rest", [-1]), self._constant("heads", [heads]))
        else:
            ends = (self._size(state, 1), self._constant("rest", [-1]))
        return self._node("Concat", batch, *ends, self._constant("size", [size]), axis=0)

    def _size(self, state: str, axis: int) -> str:
        index = self._constant(("zero", "one")[axis], axis)
        return self._unsqueeze(self._node("Gather", self._node("Shape", state), index, axis=0), 0)

    def _head(self, state: str, split: str, prefix: str, turn: list[int]) -> str:
        made = self._linear(state, prefix, self.shape.width, self.shape.width)
        return self._node("Transpose", self._node("Reshape", made, split), perm=turn)

    def _gelu(self, x: str) -> str:
        if self.shape.gelu == "none":
            return self._node("Relu", x)
        error = self._node("Erf", self._node("Div", x, self._number("root2", 1.41421354)))
        product = self._node("Mul", x, self._node("Add", error, self._number("unit", 1)))
        return self._node("Mul", product, self._number("half", 0.5))

    def _normalise(self, x: str, prefix: str) -> str:
        scale = self.draw(f"{prefix}scale", self.shape.width, middle=1)
        shift = self.draw(f"{prefix}shift", self.shape.width)
        if self.shape.opset >= NORMALIZATION:
            return self._node("LayerNormalization", x, scale, shift, axis=-1, epsilon=1e-12)
        centred = self._node("Sub", x, self._node("ReduceMean", x, axes=[-1]))
        variance = self._node("ReduceMean", self._node("Pow", centred, self._number("two", 2)), axes=[-1])
        deviation = self._node("Sqrt", self._node("Add", variance, self._number("tiny", 1e-12)))
        return self._node("Add", self._node("Mul", self._node("Div", centred, deviation), scale), shift)

    def _linear(self, x: str, prefix: str, size: int, out: int) -> str:
        product = self._node("MatMul", x, self.draw(f"{prefix}weight", size, out))
        return self._node("Add", self.draw(f"{prefix}bias", out), product)

    def _unsqueeze(self, x: str, axis: int) -> str:
        if self.shape.opset < AXES_AS_INPUT:
            return self._node("Unsqueeze", x, axes=[axis])
        return self._node("Unsqueeze", x, self._constant(f"axis{axis}", [axis]))

    def _node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        output = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], name=f"node_{output}", **attributes))
        return output

    def _constant(self, name: str, values: int | list[int]) -> str:
        return self.keep(name, np.array(values, np.int64))

    def _number(self, name: str, number: float) -> str:
        return self.keep(name, np.array(number, np.float32))

    def draw(self, name: str, *shape: int, middle: float = 0.0) -> str:
        return self.keep(name, (self.rng.standard_normal(shape, np.float32) * np.float32(0.1) + np.float32(middle)))

    def keep(self, name: str, values: np.ndarray) -> str:
        self.weights[name] = numpy_helper.from_array(np.ascontiguousarray(values).reshape(values.shape), name)
        return name
