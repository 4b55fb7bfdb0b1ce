"""Conversion to 16-bit floats: by the reference where that is right, repaired where not, refused where it must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper
from onnxruntime.transformers.float16 import convert_float_to_float16

from bundler.model.errors import StageError
from bundler.model.stage import StageResult
from bundler.onnxkit.canonical.writing import canonicalize
from bundler.onnxkit.structure import count_operators, iterate_tensors, read_structure
from tests.support import models
from tests.support.sample_sets import write_samples
from tests.support.stage_calls import call_stage

HALF = {"default": {"sqnr_db": 40.0, "absolute": None, "relative": None}}


def convert(model: Path, output: Path, samples: Path | None = None, **options: Any) -> StageResult:
    return call_stage("convert_float", output, {"model": model} | ({"samples": samples} if samples else {}), **options)


def run(model: Path, feeds: dict[str, np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    result: np.ndarray = session.run(None, feeds)[0]
    return result


def images(seed: int = 0) -> dict[str, np.ndarray]:
    return {"image": np.random.default_rng(seed).standard_normal((2, 3, 16, 16)).astype(np.float32)}


def rows(width: int, seed: int = 0, scale: float = 1.0) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).standard_normal((4, width)).astype(np.float32) * scale}


def by_hand(model: Path, folder: Path, **options: Any) -> bytes:
    """The reference's own result, in canonical form."""
    converted = convert_float_to_float16(onnx.load(model), **options)
    folder.mkdir()
    saved = folder / "saved.onnx"
    onnx.save(converted, saved)
    canonicalize(saved, folder / "model.onnx", source=folder, external_threshold=None)
    return (folder / "model.onnx").read_bytes()


def chain(*factors: float, opset: int = 17) -> ModelProto:
    """x[batch, 4] multiplied by one factor after the other; nodes are called mul0, mul1, ..."""
    names = ["x", *(f"v{place}" for place in range(len(factors) - 1)), "y"]
    nodes = [
        helper.make_node("Mul", [names[place], f"f{place}"], [names[place + 1]], name=f"mul{place}")
        for place in range(len(factors))
    ]
    weights = tuple(models.tensor(f"f{place}", np.full(4, factor, np.float32)) for place, factor in enumerate(factors))
    ports = [models.value("x", ["batch", 4])], [models.value("y", ["batch", 4])]
    return models.make_model(nodes, *ports, weights, opset=opset)


@pytest.mark.parametrize("keep_io", [True, False])
@pytest.mark.parametrize("make", [models.cnn, models.mlp, models.token_encoder])
def test_the_result_is_the_references_to_the_byte(tmp_path: Path, make: Any, *, keep_io: bool) -> None:
    model = models.save(make(), tmp_path)
    result = convert(model, tmp_path / "out", keep_io=keep_io)
    assert (tmp_path / "out" / "model.onnx").read_bytes() == by_hand(model, tmp_path / "hand", keep_io_types=keep_io)
    assert result.facts["weight_bytes_after"] * 2 == result.facts["weight_bytes_before"]
    assert result.facts["runs_on_cpu"]


def test_blocked_operators_and_nodes_are_the_references_to_the_byte(tmp_path: Path) -> None:
    model = chain(2, 3, 5)
    path = models.save(model, tmp_path)
    convert(path, tmp_path / "out", block_nodes=["mul1"])
    expected = by_hand(path, tmp_path / "hand", keep_io_types=True, node_block_list=["mul1"])
    assert (tmp_path / "out" / "model.onnx").read_bytes() == expected
    cnn = models.save(models.cnn(), tmp_path / "cnn")
    result = convert(cnn, tmp_path / "soft", block_operators=["Softmax"])
    made = onnx.load(tmp_path / "soft" / "model.onnx")
    softmax = next(node for node in made.graph.node if node.op_type == "Softmax")
    assert softmax.output[0] == "scores"  # in 32 bits, so that no cast follows
    assert result.facts["weights"] == 6


def test_outputs_stay_close_and_half_the_bytes_are_left(tmp_path: Path) -> None:
    model = models.save(models.cnn(), tmp_path)
    convert(model, tmp_path / "out")
    made = tmp_path / "out" / "model.onnx"
    np.testing.assert_allclose(run(made, images()), run(model, images()), atol=1e-3)
    assert made.stat().st_size < 0.75 * model.stat().st_size


def test_external_data_stays_outside(tmp_path: Path) -> None:
    model = models.save_external(models.cnn(), tmp_path / "outside")
    plain = models.save(models.cnn(), tmp_path / "plain")
    convert(model, tmp_path / "a")
    convert(plain, tmp_path / "b")
    assert (tmp_path / "a" / "model.onnx.data").exists()
    np.testing.assert_array_equal(
        run(tmp_path / "a" / "model.onnx", images()), run(tmp_path / "b" / "model.onnx", images())
    )


def test_neighbours_that_are_kept_share_their_value_unrounded(tmp_path: Path) -> None:
    """The reference would cast between them, and overflow there."""
    path = models.save(chain(1, 1000, 1000, 1e-6, 1), tmp_path)
    result = convert(path, tmp_path / "out", block_nodes=["mul1", "mul2", "mul3"])
    assert result.facts["kept"] == ["mul1", "mul2", "mul3"]
    assert count_operators(read_structure(tmp_path / "out" / "model.onnx"))["Cast"] == 4  # in, two around, out
    feeds = rows(4)
    np.testing.assert_allclose(run(tmp_path / "out" / "model.onnx", feeds), run(path, feeds), rtol=2e-3)


def test_two_kept_nodes_that_read_one_value_do_not_define_a_name_twice(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="r"),
        helper.make_node("Exp", ["r"], ["e"], name="e"),
        helper.make_node("Sqrt", ["r"], ["s"], name="s"),
        helper.make_node("Mul", ["e", "w"], ["ew"], name="m"),
        helper.make_node("Add", ["ew", "s"], ["y"], name="a"),
    ]
    ports = [models.value("x", ["batch", 4])], [models.value("y", ["batch", 4])]
    path = models.save(models.make_model(nodes, *ports, (models.tensor("w", models.weights(4)),)), tmp_path)
    convert(path, tmp_path / "out", block_nodes=["e", "s"])
    np.testing.assert_allclose(run(tmp_path / "out" / "model.onnx", rows(4)), run(path, rows(4)), rtol=5e-3)


def test_kept_nodes_in_branches_get_their_casts_there(tmp_path: Path) -> None:
    branches = {
        name: helper.make_graph(
            [
                helper.make_node(op, ["h"], [f"{name}_v"], name=name),
                helper.make_node("Mul", [f"{name}_v", "w"], [name]),
            ],
            name,
            [],
            [models.value(name, ["batch", 4])],
        )
        for name, op in (("one", "Exp"), ("two", "Sigmoid"))
    }
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["h"]),
        helper.make_node("If", ["flag"], ["y"], then_branch=branches["one"], else_branch=branches["two"]),
    ]
    inputs = [models.value("x", ["batch", 4]), models.value("flag", [], TensorProto.BOOL)]
    model = models.make_model(
        nodes, inputs, [models.value("y", ["batch", 4])], (models.tensor("w", models.weights(4)),)
    )
    path = models.save(model, tmp_path)
    convert(path, tmp_path / "out", block_nodes=["one"])
    for flag in (True, False):
        feeds = rows(4) | {"flag": np.array(flag)}
        np.testing.assert_allclose(run(tmp_path / "out" / "model.onnx", feeds), run(path, feeds), rtol=5e-3, atol=1e-3)


def test_operators_of_the_runtime_are_converted_too(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("FastGelu", ["x"], ["g"], domain="com.microsoft", name="gelu"),
        helper.make_node("MatMul", ["g", "w"], ["m"]),
        helper.make_node("Exp", ["m"], ["y"], name="exp"),
    ]
    ports = [models.value("x", ["batch", 8])], [models.value("y", ["batch", 8])]
    model = models.make_model(
        nodes, *ports, (models.tensor("w", models.weights(8, 8)),), domains=(("com.microsoft", 1),)
    )
    path = models.save(model, tmp_path)
    convert(path, tmp_path / "out", block_nodes=["exp", "gelu"])
    np.testing.assert_allclose(run(tmp_path / "out" / "model.onnx", rows(8)), run(path, rows(8)), rtol=5e-3)


def test_weights_out_of_range_are_clamped_and_named(tmp_path: Path) -> None:
    path = models.save(chain(1e6, 1e-6), tmp_path)
    result = convert(path, tmp_path / "out")
    assert result.facts["clamped"] == {"f0": 4}
    assert [note.text for note in result.notes if note.level == "warning"] == [
        "4 weights are out of the range of float16 and clamped to its limit: f0"
    ]


def test_a_layer_whose_parameters_do_not_fit_is_kept(tmp_path: Path) -> None:
    """A detection model of rapidocr has such a variance, and finds nothing at all with the reference's conversion."""
    parameters = {"scale": [900.0, 1], "bias": [0, 1], "mean": [0, 0], "variance": [9e5, 1]}
    constants = [
        helper.make_node("Constant", [], [name], value=models.tensor("value", np.array(values, np.float32)))
        for name, values in parameters.items()
    ]
    norm = helper.make_node("BatchNormalization", ["x", *parameters], ["n"], name="norm")
    product = helper.make_node("Mul", ["n", "w"], ["y"])
    port = ["batch", 2, 3]
    weights = (models.tensor("w", models.weights(2, 3)),)
    made = models.make_model([*constants, norm, product], [models.value("x", port)], [models.value("y", port)], weights)
    path = models.save(made, tmp_path)
    result = convert(path, tmp_path / "out")
    assert result.facts["kept"] == ["norm"]
    assert result.facts["clamped"] == {}
    assert result.notes[0].text == "kept in 32 bits, because their weights are out of the range of float16: norm"
    feeds = {"x": np.random.default_rng(0).standard_normal((1, 2, 3)).astype(np.float32)}
    np.testing.assert_allclose(run(tmp_path / "out" / "model.onnx", feeds), run(path, feeds), rtol=5e-3, atol=1e-3)


def test_overflow_that_the_cpu_hides_is_found_at_its_source(tmp_path: Path) -> None:
    path = models.save(chain(1, 1000, 1000, 1e-6), tmp_path)
    samples = write_samples(tmp_path / "samples", path, [rows(4)])
    result = convert(path, tmp_path / "out", samples)
    assert np.isfinite(run(tmp_path / "out" / "model.onnx", rows(4))).all()  # its casts are gone there
    assert result.facts["overflowing"] == ["mul2", "mul3"]
    assert not result.facts["figures"]["y"]["comparable"]
    assert result.notes[0].text == "2 nodes overflow in float16 on the samples, or read such values: mul2, mul3"


def test_the_search_keeps_what_overflows_and_no_more(tmp_path: Path) -> None:
    path = models.save(chain(1, 1000, 1000, 1e-6, 1, 2, 3), tmp_path)
    samples = write_samples(tmp_path / "samples", path, [rows(4, seed=seed) for seed in range(3)])
    result = convert(path, tmp_path / "out", samples, search=True, gate=HALF)
    assert result.facts["kept"] == ["mul2", "mul3"]
    assert not result.facts["search"]["figures"]["y"]["sqnr_db"] < 40
    np.testing.assert_allclose(run(tmp_path / "out" / "model.onnx", rows(4)), run(path, rows(4)), rtol=5e-3)


def averaging(*, width: int | str = 256) -> ModelProto:
    """A mean of squares that fits in 16 bits, and whose sum does not."""
    nodes = [
        helper.make_node("Mul", ["x", "big"], ["up"], name="up"),
        helper.make_node("Mul", ["up", "up"], ["square"], name="square"),
        helper.make_node("ReduceMean", ["square"], ["mean"], name="mean", axes=[1], keepdims=1),
        helper.make_node("ReduceMean", ["x"], ["small"], name="small", axes=[1], keepdims=1),
        helper.make_node("Sqrt", ["mean"], ["root"], name="root"),
        helper.make_node("Add", ["root", "small"], ["y"], name="add"),
    ]
    weights = (models.tensor("big", np.array([50], np.float32)),)
    return models.make_model(nodes, [models.value("x", ["batch", width])], [models.value("y", ["batch", 1])], weights)


@pytest.mark.parametrize("search", [True, False])
def test_a_mean_whose_sum_overflows_is_found_although_its_result_fits(tmp_path: Path, *, search: bool) -> None:
    """CUDA's kernel stores the sum in 16 bits: the result is infinite there."""
    path = models.save(averaging(), tmp_path)
    samples = write_samples(tmp_path / "samples", path, [rows(256, seed=seed) for seed in range(2)])
    result = convert(path, tmp_path / "out", samples, search=search, **({"gate": HALF} if search else {}))
    assert result.facts["overflowing"] == ["mean"]
    assert result.facts["kept"] == (["mean"] if search else [])


def test_a_mean_whose_sum_overflows_stays_kept_beside_what_a_search_finds(tmp_path: Path) -> None:
    """The emulation does not see what the mean costs, so that no round may drop it."""
    nodes = [
        *averaging().graph.node[:5],
        helper.make_node("Mul", ["x", "root"], ["scaled"], name="scaled"),
        helper.make_node("Add", ["scaled", "huge"], ["far"], name="far"),
        helper.make_node("Sub", ["far", "huge"], ["y"], name="back"),
    ]
    weights = (models.tensor("big", np.array([50], np.float32)), models.tensor("huge", np.array([60000], np.float32)))
    x, y = (models.value(name, ["batch", 256]) for name in "xy")
    path = models.save(models.make_model(nodes, [x], [y], weights), tmp_path)
    samples = write_samples(tmp_path / "samples", path, [rows(256, seed=seed) for seed in range(2)])
    result = convert(path, tmp_path / "out", samples, search=True, gate=HALF)
    assert {"mean", "far", "back"} <= set(result.facts["kept"])


def test_a_sum_is_that_of_its_own_sample(tmp_path: Path) -> None:
    """Another sample has more rows, and so a smaller share of values for each mean."""
    path = models.save(averaging(width="width"), tmp_path)
    wide = {"x": np.full((1, 256), 0.36, np.float32)}
    many = {"x": np.full((4, 64), 0.1, np.float32)}
    samples = write_samples(tmp_path / "samples", path, [wide, many])
    assert convert(path, tmp_path / "out", samples).facts["overflowing"] == ["mean"]


def cancelling() -> ModelProto:
    """A network of which one part, a difference of nearly equal numbers, loses everything in 16 bits."""
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"], name="relu"),
        helper.make_node("Add", ["r", "big"], ["up"], name="up"),
        helper.make_node("Sub", ["up", "big"], ["down"], name="down"),
        helper.make_node("MatMul", ["down", "w2"], ["m"], name="second"),
        helper.make_node("Tanh", ["m"], ["y"], name="tanh"),
    ]
    weights = (
        models.tensor("w1", models.weights(16, 32, seed=1)),
        models.tensor("big", np.array([4096], np.float32)),
        models.tensor("w2", models.weights(32, 8, seed=2)),
    )
    return models.make_model(nodes, [models.value("x", ["batch", 16])], [models.value("y", ["batch", 8])], weights)


def test_the_search_finds_the_nodes_that_lose_the_accuracy(tmp_path: Path) -> None:
    path = models.save(cancelling(), tmp_path)
    samples = write_samples(tmp_path / "samples", path, [rows(16, seed=seed) for seed in range(4)])
    result = convert(path, tmp_path / "out", samples, search=True, gate=HALF)
    assert result.facts["figures"]["y"]["sqnr_db"] < 20
    assert result.facts["search"]["figures"]["y"]["sqnr_db"] >= 40
    assert set(result.facts["kept"]) == {"up", "down"}
    assert result.facts["weight_bytes_after"] < 0.6 * result.facts["weight_bytes_before"]
    again = convert(path, tmp_path / "again", samples, search=True, gate=HALF)
    assert again.facts == result.facts
    assert (tmp_path / "again" / "model.onnx").read_bytes() == (tmp_path / "out" / "model.onnx").read_bytes()


def test_a_search_whose_gate_holds_at_once_keeps_nothing(tmp_path: Path) -> None:
    path = models.save(models.cnn(), tmp_path)
    samples = write_samples(tmp_path / "samples", path, [images(seed) for seed in range(2)])
    result = convert(path, tmp_path / "out", samples, search=True, gate=HALF)
    assert (result.facts["kept"], result.facts["search"]["rounds"]) == ([], 1)


def test_a_gate_that_nothing_meets_is_an_error(tmp_path: Path) -> None:
    path = models.save(models.cnn(), tmp_path)
    samples = write_samples(tmp_path / "samples", path, [images()])
    impossible = {"default": {"absolute": 0.0, "relative": 0.0, "sqnr_db": 200.0}}
    with pytest.raises(StageError, match="every node stays in 32 bits"):
        convert(path, tmp_path / "kept", samples, search=True, gate=impossible)
    with pytest.raises(StageError, match="no choice of nodes") as caught:
        convert(path, tmp_path / "out", samples, search=True, gate=impossible, keep_io=False)
    assert caught.value.details


def test_bfloat16_is_written_and_reported_not_to_run_here(tmp_path: Path) -> None:
    path = models.save(models.mlp(), tmp_path)
    result = convert(path, tmp_path / "out", type="bfloat16")
    made = read_structure(tmp_path / "out" / "model.onnx")
    assert {tensor.data_type for tensor in iterate_tensors(made)} == {TensorProto.BFLOAT16}
    assert not result.facts["runs_on_cpu"]
    assert "no kernels for bfloat16" in result.notes[0].text
    assert result.notes[0].level == "warning"
    again = convert(path, tmp_path / "again", type="bfloat16")
    assert again.facts == result.facts


def test_operators_without_a_narrow_form_are_kept_and_named(tmp_path: Path) -> None:
    result = convert(models.save(models.cnn(), tmp_path), tmp_path / "out", type="bfloat16")
    assert result.facts["kept_operators"] == ["Conv", "GlobalAveragePool"]
    assert result.notes[-1].text == "kept in 32 bits, because they have no bfloat16 form: Conv, GlobalAveragePool"
    with pytest.raises(StageError, match="bfloat16 requires opset 13"):
        convert(models.save(chain(2, opset=12), tmp_path / "old"), tmp_path / "no", type="bfloat16")


@pytest.mark.parametrize(("kind", "digits"), [("float16", 1e-3), ("bfloat16", 8e-3)])
def test_narrow_weights_alone_run_everywhere(tmp_path: Path, kind: str, digits: float) -> None:
    path = models.save(models.mlp(width=64, hidden=96, out=32), tmp_path)
    result = convert(path, tmp_path / "out", type=kind, scope="weights")
    made = tmp_path / "out" / "model.onnx"
    assert made.stat().st_size < 0.6 * path.stat().st_size
    assert (result.facts["weights"], result.facts["runs_on_cpu"]) == (2, True)
    expected = run(path, rows(64))
    np.testing.assert_allclose(run(made, rows(64)), expected, atol=digits * np.abs(expected).max() * 3)


def test_nan_weights_are_refused_and_infinite_ones_stay(tmp_path: Path) -> None:
    model = chain(2, 3)
    model.graph.initializer[0].CopyFrom(models.tensor("f0", np.array([1, np.nan, 1, 1], np.float32)))
    with pytest.raises(StageError, match="'f0' holds NaN"):
        convert(models.save(model, tmp_path), tmp_path / "out")
    model.graph.initializer[0].CopyFrom(models.tensor("f0", np.array([1, -np.inf, 1, 1], np.float32)))
    result = convert(models.save(model, tmp_path), tmp_path / "infinite")
    assert result.facts["clamped"] == {}


def quantized() -> ModelProto:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    weights = models.tensor("s", np.array(0.1, np.float32)), models.tensor("z", np.array(0, np.int8))
    return models.make_model(nodes, [models.value("x", ["n", 4])], [models.value("y", ["n", 4])], weights)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (quantized, {}, "quantised already"),
        (models.identity, {}, "nothing to convert: it has no 32-bit float"),
        (models.cnn, {"search": True}, "the search requires samples"),
        (models.cnn, {"block_nodes": ["conv"]}, "no node named 'conv'"),
        (lambda: chain(2, 3), {"block_operators": ["Mul"]}, "every node stays in 32 bits"),
    ],
)
def test_what_cannot_be_converted_is_reported(tmp_path: Path, make: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(StageError, match=message):
        convert(models.save(make(), tmp_path), tmp_path / "out", **options)


def test_a_model_that_is_narrow_already_is_refused(tmp_path: Path) -> None:
    path = models.save(models.cnn(), tmp_path)
    convert(path, tmp_path / "once", keep_io=False)
    with pytest.raises(StageError, match="it is in float16 already"):
        convert(tmp_path / "once" / "model.onnx", tmp_path / "twice")


def test_samples_that_do_not_fit_and_empty_sets_are_refused(tmp_path: Path) -> None:
    path = models.save(models.cnn(), tmp_path)
    wrong = write_samples(tmp_path / "wrong", path, [{"image": np.zeros((1, 3), np.float32)}])
    with pytest.raises(StageError, match="does not run on the samples"):
        convert(path, tmp_path / "a", wrong)
    with pytest.raises(StageError, match="there are no samples"):
        convert(path, tmp_path / "b", write_samples(tmp_path / "none", path, []))
