"""A gated recurrent unit over frames of sound, built of plain operators, with seeded weights."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FRAME, UNITS, SCORES = 40, 64, 8
GAIN = 1.6
"""Spectral radius of the recurrent weights; with less the state would soon forget its errors."""


def make_gru(*, batch: int | str = 1, seed: int = 3) -> onnx.ModelProto:
    """A GRU cell with inputs `x` [batch, FRAME] and `h0` [batch, UNITS], and outputs `scores` and `hn`."""
    generator = np.random.default_rng(seed)

    def weight(rows: int, columns: int, gain: float) -> np.ndarray:
        return (gain / np.sqrt(rows) * generator.standard_normal((rows, columns))).astype(np.float32)

    values = {"one": np.ones((), np.float32), "scores_w": weight(UNITS, SCORES, 1.0)}
    for gate in "zrc":
        values |= {f"{gate}_x": weight(FRAME, UNITS, 1.0), f"{gate}_h": weight(UNITS, UNITS, GAIN)}
        values[f"{gate}_b"] = (0.1 * generator.standard_normal(UNITS)).astype(np.float32)
    nodes = [*_gate("z", "h0"), *_gate("r", "h0"), helper.make_node("Mul", ["r", "h0"], ["reset"])]
    nodes += [
        *_gate("c", "reset", "Tanh"),
        helper.make_node("Sub", ["one", "z"], ["keep"]),
        helper.make_node("Mul", ["keep", "h0"], ["kept"]),
        helper.make_node("Mul", ["z", "c"], ["added"]),
        helper.make_node("Add", ["kept", "added"], ["hn"]),
        helper.make_node("MatMul", ["hn", "scores_w"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "gru",
        [_port("x", batch, FRAME), _port("h0", batch, UNITS)],
        [_port("scores", batch, SCORES), _port("hn", batch, UNITS)],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def make_frames(count: int, seed: int = 5) -> np.ndarray:
    """Log energies of a sliding tone with noise, one frame a step: [count, 1, FRAME]."""
    generator = np.random.default_rng(seed)
    time, band = np.arange(count)[:, None], np.arange(FRAME)[None, :]
    tone = np.exp(-(((band - 20 - 12 * np.sin(time / 9)) / 3) ** 2))
    return (2 * tone + 0.3 * generator.standard_normal((count, FRAME))).astype(np.float32)[:, None]


def _gate(name: str, state: str, activation: str = "Sigmoid") -> list[onnx.NodeProto]:
    return [
        helper.make_node("MatMul", ["x", f"{name}_x"], [f"{name}_from_x"]),
        helper.make_node("MatMul", [state, f"{name}_h"], [f"{name}_from_h"]),
        helper.make_node("Add", [f"{name}_from_x", f"{name}_from_h"], [f"{name}_sum"]),
        helper.make_node("Add", [f"{name}_sum", f"{name}_b"], [f"{name}_biased"]),
        helper.make_node(activation, [f"{name}_biased"], [name]),
    ]


def _port(name: str, batch: int | str, size: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, size])
