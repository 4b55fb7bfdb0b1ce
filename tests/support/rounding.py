"""A quantised model whose outputs depend on where the runtime rounds."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import NodeProto, helper

from tests.support import models

WIDTH = 16


def quantized_chain(*, depth: int = 3) -> onnx.ModelProto:
    """Products of int8 weights, quantised and dequantised between them: as given, ONNX Runtime multiplies in floating
    point, and fused, in integers; numbers near a boundary then round to another step.
    """
    generator = np.random.default_rng(0)
    weights = [
        models.tensor("scale", np.array(0.04, np.float32)),
        models.tensor("zero", np.array(128, np.uint8)),
        models.tensor("weight_scale", np.array(0.01, np.float32)),
        models.tensor("weight_zero", np.array(0, np.int8)),
    ]
    nodes = [*_round("x", "r0")]
    for index in range(depth):
        matrix = generator.integers(-60, 60, (WIDTH, WIDTH)).astype(np.int8)
        weights.append(models.tensor(f"w{index}", matrix))
        nodes += [
            helper.make_node("DequantizeLinear", [f"w{index}", "weight_scale", "weight_zero"], [f"d{index}"]),
            helper.make_node("MatMul", [f"r{index}", f"d{index}"], [f"m{index}"]),
            *_round(f"m{index}", "y" if index == depth - 1 else f"r{index + 1}"),
        ]
    ports = models.value("x", ["batch", WIDTH]), models.value("y", ["batch", WIDTH])
    graph = helper.make_graph(nodes, "rounding", [ports[0]], [ports[1]], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _round(name: str, result: str) -> tuple[NodeProto, NodeProto]:
    return (
        helper.make_node("QuantizeLinear", [name, "scale", "zero"], [f"{result}_steps"]),
        helper.make_node("DequantizeLinear", [f"{result}_steps", "scale", "zero"], [result]),
    )
