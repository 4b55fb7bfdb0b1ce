"""A chain of small layers, of which one can be made to lose its weights when they are quantised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from tests.support import models

DEPTH = 6


def chain(*, outlier_in: int | None = None, scale: float = 1.0) -> onnx.ModelProto:
    """`DEPTH` layers of 16 units. Unit 0 of each is always zero, so its weight in `outlier_in` changes no answer, but
    it widens the range of all the layer's weights. Layer 2 multiplies by `scale`, and the next divides by it.
    """
    nodes, weights, current = [], [], "x"
    for index in range(DEPTH):
        factor = scale if index == 2 else 1 / scale if index == 3 else 1.0
        matrix = models.weights(16, 16, seed=index) * factor
        matrix[:, 0] = 0
        if index == outlier_in:
            matrix[0, 1] = 1e4
        bias = np.full(16, 0.1 * factor, np.float32)
        bias[0] = -1
        weights += [models.tensor(f"w{index}", matrix.astype(np.float32)), models.tensor(f"b{index}", bias)]
        nodes += [
            helper.make_node("MatMul", [current, f"w{index}"], [f"m{index}"], name=f"product {index}"),
            helper.make_node("Add", [f"m{index}", f"b{index}"], [f"a{index}"], name=f"sum {index}"),
            helper.make_node("Relu", [f"a{index}"], [f"r{index}"], name=f"relu {index}"),
        ]
        current = f"r{index}"
    nodes.append(helper.make_node("Identity", [current], ["y"], name="out"))
    return models.make_model(nodes, [models.value("x", ["batch", 16])], [models.value("y", ["batch", 16])], weights)


def write_chain_samples(folder: Path, count: int) -> Path:
    """So many .npz files with the chain's input."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(0)
    for index in range(count):
        np.savez(folder / f"s{index:02d}.npz", x=random.standard_normal((8, 16)).astype(np.float32))
    return folder
