"""The node that loses the accuracy is named, not those that inherit its error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from bundler.model.errors import StageError
from tests.support import models
from tests.support.chains import DEPTH, chain
from tests.support.stage_calls import call_stage, record


class Reader(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self._samples = iter([{"x": random.standard_normal((8, 16)).astype(np.float32)} for _ in range(4)])

    def get_next(self) -> Any:
        return next(self._samples, None)


def quantize(model: Path, target: Path, **options: Any) -> Path:
    quantize_static(
        str(model),
        str(target),
        Reader(),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        **options,
    )
    return target


def find_sources(model: Path, changed: Path, tmp_path: Path, **options: Any) -> dict[str, Any]:
    golden = record(model, tmp_path / "golden", dimensions={"batch": 8})
    inputs = {"model": model, "changed": changed, "samples": golden}
    return dict(call_stage("attribute_error", tmp_path / "out", inputs, **options).facts)


@pytest.mark.parametrize("layer", [1, 4])
def test_a_layer_whose_weights_lost_their_range_is_the_worst(tmp_path: Path, layer: int) -> None:
    model = models.save(chain(outlier_in=layer), tmp_path)
    facts = find_sources(model, quantize(model, tmp_path / "changed.onnx"), tmp_path)
    worst = facts["tensors"][0]
    assert (worst["node"], worst["operator"]) == (f"product {layer}", "MatMul")
    assert worst["remedy"] == [f"product {layer}"]
    assert worst["sqnr_db"] < 20
    assert {entry["kind"] for entry in facts["tensors"]} == {"activation", "weight"}
    assert facts["compared"] > 2 * DEPTH  # the quantiser drops operators that a range replaces
    assert facts["samples"] == 4


def test_keeping_the_error_sources_restores_the_accuracy(tmp_path: Path) -> None:
    model = models.save(chain(outlier_in=3), tmp_path)
    before = find_sources(model, quantize(model, tmp_path / "all.onnx"), tmp_path / "a")
    kept = quantize(model, tmp_path / "kept.onnx", nodes_to_exclude=before["tensors"][0]["remedy"])
    after = find_sources(model, kept, tmp_path / "b")
    assert after["tensors"][0]["sqnr_db"] > before["tensors"][0]["sqnr_db"] + 10


def test_numbers_beyond_half_precision_are_found_where_they_arise(tmp_path: Path) -> None:
    """Layer 2 overflows; all after it inherit the infinity."""
    source = chain(scale=1e6)
    model, changed = models.save(source, tmp_path / "whole"), onnx.ModelProto()
    changed.CopyFrom(source)
    for item in changed.graph.initializer:
        with np.errstate(over="ignore"):
            array = numpy_helper.to_array(item).astype(np.float16)
        item.CopyFrom(numpy_helper.from_array(array, item.name))
    changed.graph.node[0].input[0] = "x half"
    changed.graph.node.insert(0, helper.make_node("Cast", ["x"], ["x half"], to=TensorProto.FLOAT16))
    changed.graph.node[-1].CopyFrom(helper.make_node("Cast", ["r5"], ["y"], to=TensorProto.FLOAT))
    facts = find_sources(model, models.save(changed, tmp_path / "half"), tmp_path)
    worst = facts["tensors"][0]
    assert (worst["node"], worst["sqnr_db"]) == ("product 2", None)
    assert sum(entry["sqnr_db"] is None for entry in facts["tensors"]) == 1


def test_of_fused_nodes_the_one_with_the_weights_is_the_error_source(tmp_path: Path) -> None:
    source = chain(outlier_in=3)
    model, changed = models.save(source, tmp_path / "whole"), onnx.ModelProto()
    changed.CopyFrom(source)
    product, addition, _ = changed.graph.node[9:12]
    changed.graph.initializer[6].CopyFrom(models.tensor("w3", np.zeros((16, 16), np.float32)))
    fused = helper.make_node("Gemm", [product.input[0], "w3", "b3"], ["a3"], name="fused")
    del changed.graph.node[9:11]
    changed.graph.node.insert(9, fused)
    worst = find_sources(model, models.save(changed, tmp_path / "fused"), tmp_path)["tensors"][0]
    assert (addition.name, worst["tensor"], worst["node"]) == ("sum 3", "a3", "product 3")
    assert worst["remedy"] == ["product 3", "sum 3"]


def test_equal_models_have_no_error_sources(tmp_path: Path) -> None:
    model = models.save(chain(), tmp_path)
    assert find_sources(model, model, tmp_path)["tensors"] == []


def test_limits_of_samples_and_tensors_hold(tmp_path: Path) -> None:
    model = models.save(chain(outlier_in=1), tmp_path)
    facts = find_sources(model, quantize(model, tmp_path / "changed.onnx"), tmp_path, samples=1, most=2)
    assert (len(facts["tensors"]), facts["samples"]) == (2, 1)


def test_weights_in_typed_fields_are_read(tmp_path: Path) -> None:
    """Older exporters write numbers one by one, not as bytes; these are too many to be kept with the structure."""
    source = chain(outlier_in=1)
    wide = np.ones((64, 64), np.float32)
    source.graph.initializer.append(helper.make_tensor("wide", TensorProto.FLOAT, wide.shape, wide.ravel()))
    source.graph.node.append(helper.make_node("Flatten", ["wide"], ["flat"], name="flat"))
    source.graph.output.append(models.value("flat", [64, 64]))
    model = models.save(source, tmp_path)
    facts = find_sources(model, quantize(model, tmp_path / "changed.onnx"), tmp_path)
    assert facts["tensors"][0]["node"] == "product 1"


def test_equal_runs_give_equal_facts(tmp_path: Path) -> None:
    model = models.save(chain(outlier_in=1), tmp_path)
    changed = quantize(model, tmp_path / "changed.onnx")
    assert find_sources(model, changed, tmp_path / "a") == find_sources(model, changed, tmp_path / "b")


def test_more_tensors_than_fit_into_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bundler.onnxkit.quantization.error_sources.TENSORS_PER_RUN", 4)
    model = models.save(chain(outlier_in=2), tmp_path)
    facts = find_sources(model, quantize(model, tmp_path / "changed.onnx"), tmp_path)
    assert facts["compared"] > 4
    assert facts["tensors"][0]["node"] == "product 2"


def test_models_with_nothing_in_common_are_refused(tmp_path: Path) -> None:
    model, other = models.save(chain(), tmp_path / "a"), models.save(models.identity("x", "z"), tmp_path / "b")
    with pytest.raises(StageError, match="no tensor in common"):
        find_sources(model, other, tmp_path)
