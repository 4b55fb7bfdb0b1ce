"""Dynamic quantisation gives the reference's bytes, and refuses what it cannot do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import helper

from bundler.model.errors import StageError
from tests.support import models
from tests.support.calibration import preprocess_by_hand, quantize_dynamic_by_hand
from tests.support.stage_calls import call_stage


def quantize(folder: Path, model: Path, **options: Any) -> dict[str, Any]:
    return dict(call_stage("quantize_dynamic", folder, {"model": model}, **options).facts)


@pytest.mark.parametrize(
    ("options", "reference"),
    [
        ({}, {}),
        ({"weight_type": "uint8"}, {"weight_type": "uint8"}),
        ({"per_channel": True}, {"per_channel": True}),
        ({"reduce_range": True}, {"reduce_range": True}),
        ({"operators": ("MatMul",)}, {"op_types_to_quantize": ["MatMul"]}),
        ({"extra": {"WeightSymmetric": False}}, {"extra_options": {"WeightSymmetric": False}}),
    ],
)
@pytest.mark.parametrize("network", ["cnn", "mlp", "token_encoder"])
def test_the_bytes_are_those_of_the_reference(
    tmp_path: Path, options: dict[str, Any], reference: dict[str, Any], network: str
) -> None:
    if "operators" in options and network != "mlp":
        options, reference = {"operators": ("Conv", "Gather")}, {"op_types_to_quantize": ["Conv", "Gather"]}
    model = models.save(getattr(models, network)(), tmp_path)
    for shapes in ("auto", "symbolic"):
        prepared = preprocess_by_hand(model, tmp_path / "prepared.onnx", skip_symbolic_shape=shapes == "auto")
        expected = quantize_dynamic_by_hand(prepared, tmp_path / "reference.onnx", **reference)
        facts = quantize(tmp_path / shapes, model, shapes=shapes, **options)
        assert (tmp_path / shapes / "model.onnx").read_bytes() == expected
        assert facts["preprocess"] == {"auto": "plain", "symbolic": "full"}[shapes]
    without = quantize_dynamic_by_hand(model, tmp_path / "reference.onnx", **reference)
    quantize(tmp_path / "without", model, preprocess=False, **options)
    assert (tmp_path / "without" / "model.onnx").read_bytes() == without


def test_facts(tmp_path: Path) -> None:
    facts = quantize(tmp_path / "out", models.save(models.mlp(), tmp_path))
    assert facts["quantized"] == {"MatMulInteger": 2}
    assert facts["tensors"] == {"activations": 2, "weights": 2}
    assert facts["preprocess"] == "plain"
    assert facts["bytes"] == (tmp_path / "out" / "model.onnx").stat().st_size


def test_weights_of_constant_nodes_are_quantised_where_the_reference_skips_them(tmp_path: Path) -> None:
    proto = models.mlp()
    constants = [helper.make_node("Constant", [], [item.name], value=item) for item in proto.graph.initializer]
    nodes = [*constants, *proto.graph.node]
    del proto.graph.initializer[:], proto.graph.node[:]
    proto.graph.node.extend(nodes)
    model = models.save(proto, tmp_path)
    skipped = onnx.load_from_string(quantize_dynamic_by_hand(model, tmp_path / "reference.onnx"))
    assert not any(node.op_type == "MatMulInteger" for node in skipped.graph.node)
    assert quantize(tmp_path / "out", model, preprocess=False)["quantized"] == {"MatMulInteger": 2}


def test_what_is_refused(tmp_path: Path) -> None:
    model = models.save(models.mlp(), tmp_path)
    quantize(tmp_path / "once", model)
    with pytest.raises(StageError, match="already quantised"):
        quantize(tmp_path / "twice", tmp_path / "once" / "model.onnx")
    with pytest.raises(StageError, match="nothing was quantised"):
        quantize(tmp_path / "none", models.save(models.identity(), tmp_path / "identity"))
    with pytest.raises(StageError, match="nothing was quantised"):
        quantize(tmp_path / "excluded", model, exclude_operators=("MatMul",))
    with pytest.raises(StageError, match="no operator 'MatMull'"):
        quantize(tmp_path / "misspelt", model, exclude_operators=("MatMull",))
    with pytest.raises(StageError, match="no option 'CalibPercentile'"):
        quantize(tmp_path / "static", model, extra={"CalibPercentile": 99})


def test_weights_of_few_bits_may_stand_beside_other_operators(tmp_path: Path) -> None:
    nodes = [
        helper.make_node(
            "MatMulNBits", ["x", "b", "s"], ["m"], domain="com.microsoft", K=16, N=8, bits=4, block_size=16
        ),
        helper.make_node("Reshape", ["m", "shape"], ["i"]),
        helper.make_node("Conv", ["i", "w"], ["y"]),
    ]
    tensors = (
        models.tensor("b", models.np.zeros((8, 1, 8), models.np.uint8)),
        models.tensor("s", models.np.ones(8, models.np.float32)),
        models.tensor("shape", models.np.array([1, 2, 2, 2])),
        models.tensor("w", models.weights(2, 2, 1, 1)),
    )
    inputs, outputs = [models.value("x", [1, 16])], [models.value("y", [1, 2, 2, 2])]
    proto = models.make_model(nodes, inputs, outputs, tensors, domains=(("com.microsoft", 1),))
    model = models.save(proto, tmp_path)
    with pytest.raises(StageError, match="already quantised"):
        quantize(tmp_path / "all", model)
    assert quantize(tmp_path / "some", model, operators=("Conv",))["quantized"] == {"ConvInteger": 1}
