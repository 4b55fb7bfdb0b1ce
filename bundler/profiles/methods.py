"""The precision methods: which stage each one is, with which options, and how much accuracy it may lose. Data only;
those that one provider wants for itself are in its file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bundler.providers.methods import EXCLUSIONS, QUANTIZED, TYPES, Loss, Method, same
from bundler.providers.registry import find_provider, provider_names

__all__ = ["AUTO", "METHODS", "NONE", "Loss", "Method"]

NONE = "none"
AUTO = "auto"


_INTEGERS = same("weight_type", "per_channel", "reduce_range", "operators") | EXCLUSIONS
_STATIC = (
    _INTEGERS
    | TYPES
    | QUANTIZED
    | same("calibration", "percentile", "format", "symmetric_activations", "symmetric_weights", "exclude_structures")
)
_WEIGHTS = same("bits", "block_size", "algorithm", "accuracy_level", "operators", "exclude_nodes") | {
    "symmetric_weights": "symmetric"
}
_FLOATS = {"keep_io": "keep_io", "exclude_operators": "block_operators", "exclude_nodes": "block_nodes"}

_STORED_FLOATS = {"exclude_operators": "block_operators", "exclude_nodes": "block_nodes"}

_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
"""Operators that are faster in int8 on a CPU; around others, conversion costs more than int8 saves."""

_MATRICES = ("MatMul", "Attention", "LSTM", "Gather")
"""The same where activations are quantised while running: convolutions then run 1.4 to 12 times slower than in floating
point (onnxruntime 1.31.1 on x86-64). Gather is for the size of embeddings and costs no time."""

_SLOW_STRUCTURES = ("depthwise", "squeeze", "narrow")
"""Convolutions that are no faster in int8 and lose the most accuracy: leaving them out took a text detector from
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
        plain="static-int8",
        **_FAST,
    ),
    _static(
        "static-int8-mixed",
        "8-bit matrix products and convolutions, except nodes that lose too much accuracy",
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
        title="half precision, except nodes that lose too much accuracy",
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

METHODS: Mapping[str, Method] = {
    row.name: row
    for row in (*_ROWS, *(row for name in provider_names() for row in find_provider(name).numerics.methods))
}
"""Every method by name, in the order in which people read them; those of providers come last."""
