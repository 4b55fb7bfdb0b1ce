"""The precision methods: which stage each one is, with which options, and how much accuracy it may lose. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bundler.model.plan import HOST

Loss = Literal["none", "half", "bfloat16", "eight-bit", "four-bit"]
"""How coarsely numbers are rounded, which decides the accuracy gate where a profile leaves it open."""

NONE = "none"
AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method. `options` are its own for the stage; `takes` maps keys of a profile's `precision` to options of the
    stage that they replace. A method that looks for the nodes to keep in floating point until the gate holds names the
    `plain` one that does not: where that holds the gate, there is nothing to look for. One that `keeps_constants`
    stores weights in another type than they are used in, which folding constants would undo.
    """

    name: str
    title: str
    stage: str
    options: Mapping[str, Any]
    takes: Mapping[str, str]
    loss: Loss
    needs_calibration: bool = False
    plain: str = ""
    keeps_constants: bool = False
    environment: str = HOST
    environments: Mapping[str, str] = field(default_factory=dict)


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_EXCLUSIONS = _same("exclude_operators", "exclude_nodes")
_INTEGERS = _same("weight_type", "per_channel", "reduce_range", "operators") | _EXCLUSIONS
_FLAVOUR = _same("activation_type", "weight_type", "per_channel", "operators", "keep_float") | _EXCLUSIONS
_STATIC = (
    _INTEGERS
    | _FLAVOUR
    | _same("calibration", "percentile", "format", "symmetric_activations", "symmetric_weights", "exclude_structures")
)
_WEIGHTS = _same("bits", "block_size", "algorithm", "accuracy_level", "operators", "exclude_nodes") | {
    "symmetric_weights": "symmetric"
}
_FLOATS = {"keep_io": "keep_io", "exclude_operators": "block_operators", "exclude_nodes": "block_nodes"}

_STORED_FLOATS = {"exclude_operators": "block_operators", "exclude_nodes": "block_nodes"}

_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
"""Operators that eight bits make faster on a CPU; around others, converting costs more than they save."""

_MATRICES = ("MatMul", "Attention", "LSTM", "Gather")
"""The same where activations are quantised while running: convolutions then run 1.4 to 12 times slower than in floating
point (onnxruntime 1.31.1 on x86-64). Gather is for the size of embeddings and costs no time."""

_SLOW_STRUCTURES = ("depthwise", "squeeze", "narrow")
"""Convolutions that are no faster in eight bits, and lose the most accuracy: leaving them out took a text detector from
11 to 20 dB."""


def _static(name: str, title: str, *, loss: Loss = "eight-bit", plain: str = "", **options: Any) -> Method:
    """Unsigned activations and signed weights: any other pair of types ran 1.5 to 2 times slower on x86-64."""
    defaults = {"activation_type": "uint8", "weight_type": "int8", "per_channel": True}
    return Method(
        name=name,
        title=title,
        stage="quantize_static",
        options={**defaults, **options},
        takes=_STATIC,
        loss=loss,
        needs_calibration=True,
        plain=plain,
    )


def _flavoured(name: str, title: str, **options: Any) -> Method:
    """As one provider wants it; what is left out is decided by the flavour."""
    return Method(
        name=name,
        title=title,
        stage="quantize_static",
        options=options,
        takes=_FLAVOUR,
        loss="eight-bit",
        needs_calibration=True,
    )


def _weights(name: str, title: str, *, loss: Loss, needs_calibration: bool = False, **options: Any) -> Method:
    return Method(
        name=name,
        title=title,
        stage="quantize_weights",
        options={"block_size": 32, **options},
        takes=_WEIGHTS,
        loss=loss,
        needs_calibration=needs_calibration,
        environment="weight-only",
    )


_FAST: Mapping[str, Any] = {"operators": _PRODUCTS, "exclude_structures": _SLOW_STRUCTURES}

_ROWS = (
    Method(
        name="dynamic-int8",
        title="8-bit weights, activations quantised while running",
        stage="quantize_dynamic",
        options={"weight_type": "int8", "per_channel": True, "operators": _MATRICES},
        takes=_INTEGERS,
        loss="eight-bit",
    ),
    _static("static-int8", "8-bit matrix products and convolutions, ranges from calibration data", **_FAST),
    _static(
        "static-int8-percentile",
        "8-bit matrix products and convolutions, ranges by percentile",
        calibration="percentile",
        percentile=99.99,
        **_FAST,
    ),
    _static(
        "static-int8-mixed",
        "8-bit matrix products and convolutions, but for the nodes that lose too much",
        keep_float="auto",
        plain="static-int8",
        **_FAST,
    ),
    _static("static-int8-full", "8-bit operators wherever the runtime has them, ranges from calibration data"),
    _static(
        "static-a16w8",
        "8-bit weights, 16-bit activations",
        activation_type="uint16",
        per_channel=False,
    ),
    _flavoured("static-qnn", "8-bit as Qualcomm's NPU takes it", flavour="qnn"),
    _flavoured(
        "static-qnn-a16w8",
        "8-bit weights, 16-bit activations for Qualcomm's NPU",
        flavour="qnn",
        activation_type="uint16",
    ),
    _flavoured("static-tensorrt", "8-bit as TensorRT takes it", flavour="tensorrt"),
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
    _weights(
        "weights-8bit", "8-bit weights of matrix products", loss="eight-bit", bits=8, algorithm="rtn", accuracy_level=4
    ),
    _weights(
        "weights-4bit", "4-bit weights of matrix products", loss="four-bit", bits=4, algorithm="rtn", accuracy_level=4
    ),
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
        accuracy_level=4,
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
        plain="fp16",
    ),
    Method(
        name="fp16-weights",
        title="weights stored in half precision, computed in full",
        stage="convert_float",
        options={"type": "float16", "scope": "weights"},
        takes=_STORED_FLOATS,
        loss="half",
        keeps_constants=True,
    ),
    Method(
        name="bf16-weights",
        title="weights stored as bfloat16, computed in full precision",
        stage="convert_float",
        options={"type": "bfloat16", "scope": "weights"},
        takes=_STORED_FLOATS,
        loss="half",
        keeps_constants=True,
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
