"""The optimisers that a README asks an application to disable are disabled."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from bundler.providers.graph_optimizers import OPTIMIZER_SEPARATOR

ENTRY = "optimization.disable_specified_optimizers"
NAMES = ("ConstantFolding", "GemmActivationFusion")


def model() -> onnx.ModelProto:
    """Two optimisers change it: one folds the sum of the weights, one puts the activation into the product."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["y"]),
        helper.make_node("Relu", ["y"], ["z"]),
        helper.make_node("Add", ["w", "w"], ["c"]),
        helper.make_node("MatMul", ["z", "c"], ["o"]),
    ]
    weights = [
        helper.make_tensor("w", TensorProto.FLOAT, [2, 2], [1, 2, 3, 4]),
        helper.make_tensor("b", TensorProto.FLOAT, [2], [1, 2]),
    ]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in ("x", "o")]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def opened(folder: Path, entry: str) -> list[str]:
    """The operators of the graph that a session runs."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / "opened.onnx")
    if entry:
        options.add_session_config_entry(ENTRY, entry)
    onnxruntime.InferenceSession(model().SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [node.op_type for node in onnx.load(folder / "opened.onnx").graph.node]


@pytest.mark.parametrize(
    ("entry", "operators"),
    [
        ("", ["FusedGemm", "MatMul"]),
        (OPTIMIZER_SEPARATOR.join(NAMES), ["Gemm", "Relu", "Add", "MatMul"]),
    ],
)
def test_the_entry_disables_all_of_its_names(entry: str, operators: list[str], tmp_path: Path) -> None:
    assert opened(tmp_path, entry) == operators
