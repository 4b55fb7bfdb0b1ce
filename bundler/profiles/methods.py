"""The precision methods: which stage each one is, with which options, and how much accuracy it may lose. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Loss = Literal["none", "half", "eight-bit", "four-bit"]
"""How coarsely numbers are rounded, which decides the accuracy gate where a profile leaves it open."""

NONE = "none"
AUTO = "auto"
HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method. `options` are its own for the stage; `takes` maps keys of a profile's `precision` to options of the
    stage that they replace. `searches` marks a method that looks for the nodes to keep in floating point until the gate
    holds, and so is told the gate.
    """

    name: str
    title: str
    stage: str
    options: Mapping[str, Any]
    takes: Mapping[str, str]
    loss: Loss
    needs_calibration: bool = False
    searches: bool = False
    environment: str = HOST
    environments: Mapping[str, str] = field(default_factory=dict)


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_EXCLUSIONS = _same("exclude_operators", "exclude_nodes")
_INTEGERS = _same("weight_type", "per_channel", "reduce_range", "operators") | _EXCLUSIONS
_STATIC = (
    _INTEGERS
    | _same("calibration", "percentile", "format", "activation_type", "symmetric_activations", "symmetric_weights")
    | _same("keep_float")
)
_FLAVOUR = _EXCLUSIONS | _same("calibration", "percentile", "operators", "keep_float")
_WEIGHTS = _same("bits", "block_size", "algorithm", "accuracy_level", "operators", "exclude_nodes") | {
    "symmetric_weights": "symmetric"
}
_FLOATS = {"keep_io": "keep_io", "exclude_operators": "block_operators", "exclude_nodes": "block_nodes"}


def _static(name: str, title: str, *, loss: Loss = "eight-bit", searches: bool = False, **options: Any) -> Method:
    takes = _STATIC if options.get("flavour", "default") == "default" else _FLAVOUR
    return Method(
        name=name,
        title=title,
        stage="quantize_static",
        options={"activation_type": "uint8", "weight_type": "int8", **options},
        takes=takes,
        loss=loss,
        needs_calibration=True,
        searches=searches,
    )


def _weights(name: str, title: str, *, loss: Loss, needs_calibration: bool = False, **options: Any) -> Method:
    return Method(
        name=name,
        title=title,
        stage="quantize_weights",
        options=options,
        takes=_WEIGHTS,
        loss=loss,
        needs_calibration=needs_calibration,
        environment="weight-only",
    )


_ROWS = (
    Method(
        name="dynamic-int8",
        title="8-bit weights, activations quantised while running",
        stage="quantize_dynamic",
        options={"weight_type": "int8"},
        takes=_INTEGERS,
        loss="eight-bit",
    ),
    _static("static-int8", "8-bit weights and activations, ranges from calibration data", per_channel=True),
    _static(
        "static-int8-percentile",
        "8-bit weights and activations, ranges by percentile",
        per_channel=True,
        calibration="percentile",
    ),
    _static(
        "static-int8-entropy",
        "8-bit weights and activations, ranges by entropy",
        per_channel=True,
        calibration="entropy",
    ),
    _static(
        "static-int8-mixed",
        "8-bit weights and activations, but for the nodes that lose too much",
        per_channel=True,
        keep_float="auto",
        searches=True,
    ),
    _static("static-a16w8", "8-bit weights, 16-bit activations", activation_type="uint16", per_channel=True),
    _static("static-qnn", "8-bit as Qualcomm's NPU takes it", flavour="qnn", weight_type="uint8"),
    _static(
        "static-qnn-a16w8",
        "8-bit weights, 16-bit activations for Qualcomm's NPU",
        flavour="qnn",
        weight_type="uint8",
        activation_type="uint16",
    ),
    _static("static-tensorrt", "8-bit as TensorRT takes it", flavour="tensorrt", activation_type="int8"),
    Method(
        name="nncf-int8",
        title="8-bit weights and activations by OpenVINO's NNCF",
        stage="quantize_nncf",
        options={"preset": "mixed"},
        takes=_EXCLUSIONS | _same("preset"),
        loss="eight-bit",
        needs_calibration=True,
        environment="nncf",
    ),
    _weights("weights-8bit", "8-bit weights of matrix products", loss="eight-bit", bits=8, algorithm="rtn"),
    _weights("weights-4bit", "4-bit weights of matrix products", loss="four-bit", bits=4, algorithm="rtn"),
    _weights(
        "weights-4bit-hqq",
        "4-bit weights of matrix products, by half-quadratic search",
        loss="four-bit",
        bits=4,
        algorithm="hqq",
    ),
    _weights(
        "weights-4bit-gptq",
        "4-bit weights of matrix products, by GPTQ from calibration data",
        loss="four-bit",
        needs_calibration=True,
        bits=4,
        algorithm="gptq",
    ),
    Method(
        name="fp16",
        title="half precision",
        stage="convert_float",
        options={"type": "float16"},
        takes=_FLOATS,
        loss="half",
    ),
    Method(
        name="mixed-fp16",
        title="half precision, but for the nodes that lose too much",
        stage="convert_float",
        options={"type": "float16", "search": True},
        takes=_FLOATS,
        loss="half",
        needs_calibration=True,
        searches=True,
    ),
    Method(
        name="bf16",
        title="bfloat16",
        stage="convert_float",
        options={"type": "bfloat16"},
        takes=_FLOATS,
        loss="half",
    ),
)

METHODS: Mapping[str, Method] = {row.name: row for row in _ROWS}
"""Every method by name, in the order in which people read them."""
