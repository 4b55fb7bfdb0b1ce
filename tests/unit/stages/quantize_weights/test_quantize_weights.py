"""Weight-only quantisation: what is quantised, what is left, what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper
from onnxruntime.quantization import matmul_nbits_quantizer as reference

from bundler.model.errors import StageError
from bundler.model.stage import StageResult
from bundler.onnxkit.canonical.writing import canonicalize
from bundler.onnxkit.structure import count_operators, read_structure
from tests.support import models
from tests.support.sample_sets import write_samples
from tests.support.stage_calls import call_stage


def quantize(model: Path, output: Path, samples: Path | None = None, **options: Any) -> StageResult:
    return call_stage(
        "quantize_weights", output, {"model": model} | ({"samples": samples} if samples else {}), **options
    )


def perceptron() -> ModelProto:
    """x[batch, 64] -> y[batch, 32] through two products that are wide enough for blocks."""
    return models.mlp(width=64, hidden=96, out=32)


def run(model: Path, feeds: dict[str, np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    result: np.ndarray = session.run(None, feeds)[0]
    return result


def batch(rows: int = 8, width: int = 64, seed: int = 7) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).standard_normal((rows, width)).astype(np.float32)}


def sqnr(expected: np.ndarray, actual: np.ndarray) -> float:
    return float(10 * np.log10(np.square(expected).sum() / np.square(expected - actual).sum()))


def samples_of(tmp_path: Path, model: Path, count: int = 6) -> Path:
    return write_samples(tmp_path / "samples", model, [batch(seed=seed) for seed in range(count)])


def by_hand(model: Path, folder: Path, config: reference.WeightOnlyQuantConfig, **options: Any) -> bytes:
    """The reference's own result, in canonical form."""
    loaded = onnx.load(model)
    for number, node in enumerate(loaded.graph.node):
        node.name = f"node{number}"
    quantizer = reference.MatMulNBitsQuantizer(loaded, algo_config=config, **options)
    quantizer.process()
    made = quantizer.model.model
    if all(item.domain != "com.microsoft" for item in made.opset_import):  # GPTQ forgets it
        made.opset_import.add(domain="com.microsoft", version=1)
    folder.mkdir()
    saved = folder / "saved.onnx"
    onnx.save(made, saved)
    canonicalize(saved, folder / "model.onnx", source=folder, external_threshold=None)
    return (folder / "model.onnx").read_bytes()


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("symmetric", [False, True])
def test_round_to_nearest_is_the_references_to_the_byte(tmp_path: Path, *, bits: int, symmetric: bool) -> None:
    model = models.save(perceptron(), tmp_path)
    result = quantize(model, tmp_path / "out", bits=bits, symmetric=symmetric, accuracy_level=4)
    config = reference.DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=symmetric, accuracy_level=4, bits=bits)
    assert (tmp_path / "out" / "model.onnx").read_bytes() == by_hand(model, tmp_path / "hand", config)
    assert result.facts["quantized"] == {"MatMul": 2}
    assert result.facts["weight_bytes_before"] == 4 * (64 * 96 + 96 * 32)
    assert result.facts["weight_bytes_after"] < result.facts["weight_bytes_before"] * (0.2 if bits == 4 else 0.32)


def correlated(seed: int, count: int = 64, width: int = 64) -> dict[str, np.ndarray]:
    """Rows whose values hang together, as those of real activations do."""
    mixing = np.random.default_rng(5).standard_normal((8, width))
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((count, 8)) @ mixing + 0.1 * rng.standard_normal((count, width))
    return {"x": values.astype(np.float32)}


@pytest.mark.parametrize("symmetric", [False, True])
def test_gptq_is_closer_than_round_to_nearest_on_what_it_was_shown(tmp_path: Path, *, symmetric: bool) -> None:
    path = models.save(models.mlp(width=64, hidden=128, out=32), tmp_path)
    samples = write_samples(tmp_path / "samples", path, [correlated(seed) for seed in range(6)])
    figures = {}
    for algorithm in ("rtn", "gptq"):
        result = quantize(path, tmp_path / algorithm, samples, algorithm=algorithm, symmetric=symmetric)
        feeds = correlated(99)
        figures[algorithm] = sqnr(run(path, feeds), run(tmp_path / algorithm / "model.onnx", feeds))
    assert figures["gptq"] > figures["rtn"] + 0.3
    assert result.facts["samples"] == 6


def test_the_reference_alone_makes_no_use_of_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why our GPTQ is not the reference's to the byte: that one's codes are those of round-to-nearest."""
    path = models.save(models.mlp(width=64, hidden=128, out=32), tmp_path)
    # The reference asks torch what type a NumPy array has; nothing else needs it here.
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    made = {}
    for seed in (0, 1):
        config = reference.GPTQWeightOnlyQuantConfig(calibration_data_reader=[correlated(seed)])
        made[seed] = by_hand(path, tmp_path / f"hand{seed}", config, block_size=32)
    assert made[0] == made[1]


def test_hqq_needs_no_torch_and_is_closer_to_the_model_than_round_to_nearest(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    model = perceptron()
    for tensor in model.graph.initializer:  # heavy tails, as trained weights have: there is something to gain
        if len(tensor.dims) == 2:
            values = (rng.standard_t(3, tuple(tensor.dims)) * 0.1).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    path = models.save(model, tmp_path)
    expected = run(path, batch())
    for algorithm in ("rtn", "hqq"):
        quantize(path, tmp_path / algorithm, algorithm=algorithm)
    figures = {name: sqnr(expected, run(tmp_path / name / "model.onnx", batch())) for name in ("rtn", "hqq")}
    assert figures["hqq"] > figures["rtn"] > 10


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16])
def test_scales_and_zero_points_of_hqq_have_the_type_of_the_weight(tmp_path: Path, kind: int) -> None:
    weight = np.random.default_rng(3).standard_normal((64, 16)).astype(helper.tensor_dtype_to_np_dtype(kind))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", kind, ["n", 64])],
        [helper.make_tensor_value_info("y", kind, ["n", 16])],
        [onnx.numpy_helper.from_array(weight, "w")],
    )
    model = models.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), tmp_path)
    quantize(model, tmp_path / "out", algorithm="hqq")
    made = onnx.load(tmp_path / "out" / "model.onnx").graph
    tensors = {item.name: item for item in made.initializer}
    packed, scales, zeros = (tensors[name] for name in made.node[0].input[1:])
    assert scales.data_type == zeros.data_type == kind
    scales, zeros = (onnx.numpy_helper.to_array(tensor).astype(np.float32) for tensor in (scales, zeros))
    packed = onnx.numpy_helper.to_array(packed).reshape(16, 2, -1)
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(16, 2, 32).astype(np.float32)
    found = ((codes - zeros.reshape(16, 2, 1)) * scales.reshape(16, 2, 1)).reshape(16, 64).T
    assert sqnr(weight.astype(np.float32), found) > 15


def test_an_accuracy_level_reaches_every_algorithm(tmp_path: Path) -> None:
    path = models.save(models.mlp(width=64, hidden=128, out=32), tmp_path)
    samples = samples_of(tmp_path, path)
    for algorithm in ("rtn", "hqq", "gptq"):
        quantize(path, tmp_path / algorithm, samples, algorithm=algorithm, accuracy_level=4)
        made = onnx.load(tmp_path / algorithm / "model.onnx")
        levels = [item.i for node in made.graph.node for item in node.attribute if item.name == "accuracy_level"]
        assert levels == [4, 4]
        assert sqnr(run(path, batch()), run(tmp_path / algorithm / "model.onnx", batch())) > 10


@pytest.mark.parametrize("algorithm", ["rtn", "hqq", "gptq"])
def test_the_same_bytes_every_time(tmp_path: Path, algorithm: str) -> None:
    model = models.save(models.mlp(width=64, hidden=128, out=32), tmp_path)
    samples = samples_of(tmp_path, model)
    first, second = (quantize(model, tmp_path / name, samples, algorithm=algorithm) for name in ("a", "b"))
    assert first.facts == second.facts
    assert (tmp_path / "a" / "model.onnx").read_bytes() == (tmp_path / "b" / "model.onnx").read_bytes()


def test_a_cnn_is_refused_with_what_it_has_instead(tmp_path: Path) -> None:
    model = models.save(models.cnn(), tmp_path)
    with pytest.raises(StageError, match="no weight to quantise") as caught:
        quantize(model, tmp_path / "out")
    assert caught.value.details == ("it has 2 Conv, 1 Gemm",)
    assert "Gemm" in (caught.value.hint or "")


def test_gemm_is_quantised_where_it_is_named_and_noted_where_not(tmp_path: Path) -> None:
    model = models.save(models.cnn(), tmp_path)
    result = quantize(model, tmp_path / "out", operators=["MatMul", "Gemm"], bits=8, block_size=16)
    assert result.facts["quantized"] == {"Gemm": 1}
    feeds = {"image": np.random.default_rng(0).standard_normal((2, 3, 16, 16)).astype(np.float32)}
    np.testing.assert_allclose(run(tmp_path / "out" / "model.onnx", feeds), run(model, feeds), atol=0.02)


def test_weights_in_constant_nodes_are_found(tmp_path: Path) -> None:
    model = perceptron()
    weight = next(tensor for tensor in model.graph.initializer if tensor.name == "w1")
    model.graph.node.insert(0, helper.make_node("Constant", [], ["w1"], value=weight))
    model.graph.initializer.remove(weight)
    result = quantize(models.save(model, tmp_path), tmp_path / "out")
    assert result.facts["quantized"] == {"MatMul": 2}


def test_a_weight_that_two_nodes_read_is_stored_once(tmp_path: Path) -> None:
    w = models.tensor("w", models.weights(64, 64))
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("MatMul", ["h", "w"], ["y"])]
    shared = models.make_model(nodes, [models.value("x", ["b", 64])], [models.value("y", ["b", 64])], (w,))
    path = models.save(shared, tmp_path)
    result = quantize(path, tmp_path / "out")
    assert result.facts["weight_bytes_after"] == 64 * 64 // 2 + 64 * 2 * 4 + 64
    gptq = quantize(path, tmp_path / "gptq", samples_of(tmp_path, path), algorithm="gptq")
    assert gptq.facts["quantized"] == {"MatMul": 2}
    expected = run(path, batch())
    assert sqnr(expected, run(tmp_path / "gptq" / "model.onnx", batch())) > 10


def test_nodes_are_kept_out_by_name(tmp_path: Path) -> None:
    model = models.mlp(width=64, hidden=128, out=32)
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}{number}"
    path = models.save(model, tmp_path)
    samples = samples_of(tmp_path, path)
    for algorithm in ("rtn", "gptq"):
        result = quantize(path, tmp_path / algorithm, samples, algorithm=algorithm, exclude_nodes=["MatMul0"])
        assert result.facts["quantized"] == {"MatMul": 1}
        assert result.facts["left"] == {"excluded": 1}
        counts = count_operators(read_structure(tmp_path / algorithm / "model.onnx"))
        assert (counts["MatMul"], counts["com.microsoft.MatMulNBits"]) == (1, 1)
    with pytest.raises(StageError, match="no node named 'MatMul1'") as caught:
        quantize(path, tmp_path / "wrong", exclude_nodes=["MatMul1"])
    assert "did you mean" in (caught.value.hint or "")


def test_external_data_stays_outside_and_nothing_else_changes(tmp_path: Path) -> None:
    plain = models.save(perceptron(), tmp_path / "plain")
    outside = models.save_external(perceptron(), tmp_path / "outside")
    quantize(plain, tmp_path / "a")
    quantize(outside, tmp_path / "b")
    assert (tmp_path / "b" / "model.onnx.data").exists()
    np.testing.assert_array_equal(
        run(tmp_path / "a" / "model.onnx", batch()), run(tmp_path / "b" / "model.onnx", batch())
    )


def test_weights_in_branches_are_quantised(tmp_path: Path) -> None:
    branches = {
        name: helper.make_graph(
            [helper.make_node("MatMul", ["x", f"{name}_w"], [f"{name}_y"])],
            name,
            [],
            [models.value(f"{name}_y", ["b", 32])],
            [models.tensor(f"{name}_w", models.weights(64, 32, seed=seed))],
        )
        for seed, name in enumerate(("then", "else"))
    }
    node = helper.make_node("If", ["flag"], ["y"], then_branch=branches["then"], else_branch=branches["else"])
    inputs = [models.value("x", ["b", 64]), models.value("flag", [], TensorProto.BOOL)]
    path = models.save(models.make_model([node], inputs, [models.value("y", ["b", 32])]), tmp_path)
    assert quantize(path, tmp_path / "out").facts["quantized"] == {"MatMul": 2}
    for flag in (True, False):
        feeds = batch() | {"flag": np.array(flag)}
        assert sqnr(run(path, feeds), run(tmp_path / "out" / "model.onnx", feeds)) > 15


def test_a_table_is_quantised_where_its_format_allows(tmp_path: Path) -> None:
    old = models.save(models.token_encoder(vocabulary=32, width=64), tmp_path)
    with pytest.raises(StageError, match="require opset 21, and the model has opset 17"):
        quantize(old, tmp_path / "old", operators=["Gather"])
    table = models.tensor("table", models.weights(32, 64))
    node = helper.make_node("Gather", ["table", "ids"], ["rows"])
    ids, rows = models.value("ids", ["n"], TensorProto.INT64), models.value("rows", ["n", 64])
    path = models.save(models.make_model([node], [ids], [rows], (table,), opset=21, ir_version=10), tmp_path / "new")
    assert quantize(path, tmp_path / "out", operators=["Gather"]).facts["quantized"] == {"Gather": 1}
    feeds = {"ids": np.arange(32)}
    assert sqnr(run(path, feeds), run(tmp_path / "out" / "model.onnx", feeds)) > 15


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "gptq"}, "GPTQ requires samples"),
        ({"algorithm": "gptq", "bits": 8}, "GPTQ supports 4-bit weights"),
        ({"algorithm": "hqq", "bits": 8}, "no kernel for 8-bit weights with the fractional zero points of HQQ"),
        ({"algorithm": "hqq", "symmetric": True}, "HQQ has no symmetric form"),
        ({"block_size": 48}, "a block of 48 weights is not possible"),
        ({"block_size": 8}, "a block of 8 weights is not possible"),
        ({"operators": ["Conv"]}, "weight-only quantisation does not support Conv"),
        ({"operators": ["Gather"], "bits": 8}, "only to 4 bits, by round-to-nearest"),
    ],
)
def test_what_the_reference_does_not_support_is_reported(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(StageError, match=message):
        quantize(models.save(perceptron(), tmp_path), tmp_path / "out", **options)


def test_weights_that_are_not_numbers_are_refused(tmp_path: Path) -> None:
    model = perceptron()
    values = models.weights(64, 96)
    values[3, 5] = np.nan
    model.graph.initializer[0].CopyFrom(models.tensor("w1", values))
    path = models.save(model, tmp_path)
    with pytest.raises(StageError, match=r"'w1' cannot be quantised: 1 of 6144 values are NaN"):
        quantize(path, tmp_path / "out")
    with pytest.raises(StageError, match="are NaN or infinite"):
        quantize(path, tmp_path / "gptq", samples_of(tmp_path, path), algorithm="gptq")


def test_a_model_that_is_quantised_already_is_refused(tmp_path: Path) -> None:
    path = models.save(perceptron(), tmp_path)
    quantize(path, tmp_path / "once")
    with pytest.raises(StageError, match="quantised already"):
        quantize(tmp_path / "once" / "model.onnx", tmp_path / "twice")


def test_samples_that_do_not_fit_and_empty_sets_are_refused(tmp_path: Path) -> None:
    path = models.save(perceptron(), tmp_path)
    wrong = write_samples(tmp_path / "wrong", path, [{"x": np.zeros((1, 3), np.float32)}])
    with pytest.raises(StageError, match="does not run on the samples"):
        quantize(path, tmp_path / "a", wrong, algorithm="gptq", symmetric=True)
    with pytest.raises(StageError, match="the set has none"):
        quantize(path, tmp_path / "b", write_samples(tmp_path / "none", path, []), algorithm="gptq")


def test_a_row_with_an_odd_number_of_blocks_is_left_by_gptq(tmp_path: Path) -> None:
    path = models.save(perceptron(), tmp_path)  # 96 rows are three blocks
    result = quantize(path, tmp_path / "out", samples_of(tmp_path, path), algorithm="gptq")
    assert result.facts["left"] == {"odd blocks": 1}


def test_names_that_the_reference_would_take_twice_are_refused(tmp_path: Path) -> None:
    model = perceptron()
    model.graph.initializer.append(models.tensor("w1_Q4", models.weights(3)))
    with pytest.raises(StageError, match="'w1_Q4' of the quantised weight already exists"):
        quantize(models.save(model, tmp_path), tmp_path / "out")
