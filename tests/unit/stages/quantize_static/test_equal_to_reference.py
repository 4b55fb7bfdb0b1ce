"""The same options give the same bytes as ONNX Runtime's quantiser run by hand over all samples at once."""

from __future__ import annotations

import copy
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
from onnxruntime.quantization import quantize
from onnxruntime.quantization.execution_providers.qnn import get_qnn_qdq_config, qnn_preprocess_model

from bundler.onnxkit.quantization import histograms
from bundler.onnxkit.quantization.reference import TYPES, quiet
from bundler.profiles.methods import METHODS
from tests.support import models
from tests.support.calibration import (
    Feeds,
    normal_feeds,
    preprocess_by_hand,
    quantize_by_hand,
    write_set,
)
from tests.support.stage_calls import call_stage


@dataclass(frozen=True)
class Case:
    form: str = "qdq"
    types: tuple[str, str] = ("uint8", "int8")
    calibration: str = "minmax"
    options: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


CASES = {
    "U8S8": Case(),
    "U8S8 per channel": Case(options={"per_channel": True}),
    "U8U8": Case(types=("uint8", "uint8")),
    "S8S8 symmetric": Case(types=("int8", "int8"), extra={"ActivationSymmetric": True, "WeightSymmetric": True}),
    "asymmetric weights": Case(types=("uint8", "uint8"), extra={"WeightSymmetric": False}),
    "7 bits": Case(options={"reduce_range": True, "per_channel": True}),
    "A16W8": Case(types=("uint16", "int8")),
    "A16W8 signed": Case(types=("int16", "int8")),
    "QOperator U8U8": Case(form="qoperator", types=("uint8", "uint8")),
    "QOperator U8S8 per channel": Case(form="qoperator", options={"per_channel": True}),
    "entropy": Case(calibration="entropy"),
    "entropy symmetric range": Case(calibration="entropy", extra={"CalibTensorRangeSymmetric": True}),
    "percentile of absolute values": Case(calibration="percentile"),
    "percentile of values": Case(
        calibration="percentile", extra={"CalibTensorRangeSymmetric": False, "CalibPercentile": 99.0}
    ),
    "distribution": Case(calibration="distribution"),
    "moving average": Case(extra={"CalibMovingAverage": True}),
    "symmetric range": Case(extra={"CalibTensorRangeSymmetric": True}),
    "chosen operators": Case(options={"op_types_to_quantize": ["Conv"]}),
    "bias in floating point": Case(extra={"QuantizeBias": False, "DedicatedQDQPair": True}),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.save(models.cnn(), tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def prepared(model: Path) -> Path:
    return preprocess_by_hand(model, model.with_name("preprocessed.onnx"), skip_symbolic_shape=True)


FEEDS = normal_feeds("image", (2, 3, 16, 16), 40)


def by_stage(model: Path, folder: Path, case: Case, **more: Any) -> bytes:
    options = dict(case.options)
    if "op_types_to_quantize" in options:
        options["operators"] = tuple(options.pop("op_types_to_quantize"))
    call_stage(
        "quantize_static",
        folder / "out",
        {"model": model, "samples": write_set(model, FEEDS, folder / "samples")},
        format=case.form,
        calibration=case.calibration,
        activation_type=case.types[0],
        weight_type=case.types[1],
        extra=case.extra,
        **options,
        **more,
    )
    return (folder / "out" / "model.onnx").read_bytes()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_bytes_are_those_of_the_reference(model: Path, prepared: Path, tmp_path: Path, case: Case) -> None:
    reference = quantize_by_hand(
        prepared,
        FEEDS,
        tmp_path / "reference.onnx",
        form=case.form,
        calibration=case.calibration,
        types=case.types,
        extra=case.extra,
        **case.options,
    )
    assert by_stage(model, tmp_path, case) == reference
    onnxruntime.InferenceSession(reference, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("calibration", ["entropy", "percentile", "distribution"])
def test_histograms_are_the_same_when_no_activation_may_wait(
    model: Path, prepared: Path, tmp_path: Path, calibration: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = quantize_by_hand(prepared, FEEDS, tmp_path / "reference.onnx", calibration=calibration)
    monkeypatch.setattr(histograms, "_KEPT_BYTES", 100_000)
    assert by_stage(model, tmp_path, Case(calibration=calibration)) == reference


def test_with_symbolic_shapes(model: Path, tmp_path: Path) -> None:
    prepared = preprocess_by_hand(model, tmp_path / "preprocessed.onnx")
    reference = quantize_by_hand(prepared, FEEDS, tmp_path / "reference.onnx")
    assert by_stage(model, tmp_path, Case(), shapes="symbolic") == reference


def test_without_the_pre_process(model: Path, tmp_path: Path) -> None:
    reference = quantize_by_hand(model, FEEDS, tmp_path / "reference.onnx")
    assert by_stage(model, tmp_path, Case(), preprocess=False) == reference


@pytest.mark.parametrize("types", [("uint8", "uint8"), ("uint16", "uint8")])
@pytest.mark.parametrize("network", ["cnn", "mlp"])
def test_the_references_rules_for_a_provider(tmp_path: Path, types: tuple[str, str], network: str) -> None:
    build, name, shape = (models.cnn, "image", (1, 3, 16, 16)) if network == "cnn" else (models.mlp, "x", (1, 8))
    model, feeds = models.save(build(batch=1), tmp_path / "model"), normal_feeds(name, shape)
    source = model.with_name("qnn.onnx")
    with quiet():
        source = source if qnn_preprocess_model(str(model), str(source)) else model
        config = get_qnn_qdq_config(source, Feeds(feeds), activation_type=TYPES[types[0]], weight_type=TYPES[types[1]])
        quantize(source, tmp_path / "reference.onnx", config)
    samples = write_set(model, feeds, tmp_path / "samples")
    result = call_stage(
        "quantize_static",
        tmp_path / "out",
        {"model": model, "samples": samples},
        rules="qnn",
        activation_type=types[0],
        weight_type=types[1],
    )
    assert (tmp_path / "out" / "model.onnx").read_bytes() == (tmp_path / "reference.onnx").read_bytes()
    assert result.facts["preprocess"] == "qnn"


def test_what_tensorrt_wants(model: Path, prepared: Path, tmp_path: Path) -> None:
    extra = {"ActivationSymmetric": True, "WeightSymmetric": True, "QuantizeBias": False, "DedicatedQDQPair": True}
    reference = quantize_by_hand(
        prepared, FEEDS, tmp_path / "reference.onnx", types=("int8", "int8"), per_channel=True, extra=extra
    )
    samples = write_set(model, FEEDS, tmp_path / "samples")
    wanted = METHODS["static-tensorrt"].options
    result = call_stage("quantize_static", tmp_path / "out", {"model": model, "samples": samples}, **wanted)
    assert (tmp_path / "out" / "model.onnx").read_bytes() == reference
    assert (result.facts["activation_type"], result.facts["weight_type"], result.facts["per_channel"]) == (
        "int8",
        "int8",
        True,
    )


def test_samples_of_several_sizes_are_calibrated_where_the_reference_stops(tmp_path: Path) -> None:
    model = models.save(models.unnamed_dimensions(), tmp_path / "model")
    feeds = [normal_feeds("image", (1, 3, size, size), 1, seed=size)[0] for size in (8, 12, 9)]
    with pytest.raises(ValueError, match="inhomogeneous"):
        quantize_by_hand(model, copy.copy(feeds), tmp_path / "reference.onnx", calibration="entropy")
    samples = write_set(model, feeds, tmp_path / "samples")
    result = call_stage(
        "quantize_static", tmp_path / "out", {"model": model, "samples": samples}, calibration="entropy"
    )
    assert result.facts["quantized"] == {"Conv": 1}


def test_the_reference_prints_nothing(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    by_stage(model, tmp_path, Case(calibration="percentile"))
    assert capsys.readouterr().out == ""  # a worker speaks JSON there
    assert caplog.records == []
    assert not logging.root.manager.disable
