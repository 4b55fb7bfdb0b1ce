"""A gated recurrent unit over frames of sound, built of plain operators, with seeded weights."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
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


def make_voice() -> onnx.ModelProto:
    """A voice detector that takes eight values at 16 kHz and four at 8 kHz, as exporters write it: at the wrong length,
    the inner condition of a branch is decided, and gives its recurrent layer an input of rank 4.
    """
    generator = np.random.default_rng(2)
    shapes = {"W": (1, 2, 4), "R": (1, 2, 2)}
    weights = [
        numpy_helper.from_array(generator.standard_normal(shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    model: onnx.ModelProto = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        voice (float[1, samples] x, int64 rate, float[1, 1, 2] h0) => (float[1, 1, 2] score, float[1, 1, 2] hn)
        <int64 fast = {16000}, int64 four = {4}, int64 eight = {8}, int64 one = {1}, int64[1] zero = {0},
         int64[3] once = {1, 1, 4}, int64[3] twice = {2, 1, 4}> {
            high = Equal (rate, fast)
            hn = If (high) <
                then_branch = high_branch () => (float[1, 1, 2] high_h) {
                    high_shape = Shape (x)
                    high_length = Gather (high_shape, one)
                    high_fits = Equal (high_length, eight)
                    high_frames = If (high_fits) <
                        then_branch = high_good () => (high_ok) { high_ok = Reshape (x, twice) },
                        else_branch = high_bad () => (high_not) { high_not = Unsqueeze (h0, zero) }
                    >
                    high_all, high_h = RNN <hidden_size = 2> (high_frames, W, R, , , h0)
                },
                else_branch = low_branch () => (float[1, 1, 2] low_h) {
                    low_shape = Shape (x)
                    low_length = Gather (low_shape, one)
                    low_fits = Equal (low_length, four)
                    low_frames = If (low_fits) <
                        then_branch = low_good () => (low_ok) { low_ok = Reshape (x, once) },
                        else_branch = low_bad () => (low_not) { low_not = Unsqueeze (h0, zero) }
                    >
                    low_all, low_h = RNN <hidden_size = 2> (low_frames, W, R, , , h0)
                }
            >
            score = Sigmoid (hn)
        }
        """)
    model.graph.initializer.extend(weights)
    return model
