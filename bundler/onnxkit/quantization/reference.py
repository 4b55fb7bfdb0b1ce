"""Wrap ONNX Runtime's quantiser: its types and methods by name, its output silenced, its errors as `StageError`."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Final

from onnxruntime.quantization import CalibrationMethod, QuantType

from bundler.model.errors import BundlerError, StageError
from bundler.onnxkit.sessions import clean_message

TYPES: Final[Mapping[str, QuantType]] = {
    "uint8": QuantType.QUInt8,
    "int8": QuantType.QInt8,
    "uint16": QuantType.QUInt16,
    "int16": QuantType.QInt16,
    "uint4": QuantType.QUInt4,
    "int4": QuantType.QInt4,
}
METHODS: Final[Mapping[str, CalibrationMethod]] = {
    "minmax": CalibrationMethod.MinMax,
    "entropy": CalibrationMethod.Entropy,
    "percentile": CalibrationMethod.Percentile,
    "distribution": CalibrationMethod.Distribution,
}

REFERENCE_ERRORS: Final[tuple[type[Exception], ...]] = (Exception,)
"""Errors of the reference on a model that it does not support: any Python error, including a bare
`Exception` of its own, so that no narrower list is possible."""
_OUT_OF_MEMORY: Final = ("failed to allocate memory", "bad_alloc", "unable to allocate")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence the reference: it prints to standard output, which is a worker's pipe, and logs needless advice."""
    previous = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)


@contextlib.contextmanager
def own_errors(message: str, *, hint: str | None = None) -> Iterator[None]:
    """Run the reference quietly; its errors become a `StageError` with `message` and their own text."""
    try:
        with quiet():
            yield
    except BundlerError:
        raise
    except MemoryError as cause:
        raise no_memory() from cause
    except REFERENCE_ERRORS as cause:
        text = clean_message(cause)
        if any(words in text.lower() for words in _OUT_OF_MEMORY):
            raise no_memory() from cause
        details = (f"{type(cause).__name__}: {text}" if text else type(cause).__name__,)
        raise StageError(message, details=details, hint=hint) from cause


def no_memory() -> StageError:
    """The error when the machine has too little memory for one sample's activations."""
    return StageError(
        "there is not enough memory to calibrate: the activations of a single sample do not fit",
        hint="give smaller samples, fix dynamic dimensions to smaller sizes (--dim), calibrate by `minmax` (which keeps"
        " no activations), or quantise fewer operators",
    )


def typed_overrides(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The reference's `extra_options`, with the types in its tensor overrides as its own. Raises `StageError`."""
    plain = dict(extra)
    if "TensorQuantOverrides" in plain:
        overrides = plain["TensorQuantOverrides"]
        plain["TensorQuantOverrides"] = {
            name: [_typed(entry) for entry in entries] for name, entries in overrides.items()
        }
    return plain


def _typed(entry: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(entry)
    if "quant_type" in result:
        result["quant_type"] = _type_named(str(result["quant_type"]))
    if "convert" in result:
        result["convert"] = _typed(result["convert"])
        if "recv_nodes" in result["convert"]:
            result["convert"]["recv_nodes"] = set(result["convert"]["recv_nodes"])
    return result


def _type_named(name: str) -> QuantType:
    plain = name.lower().removeprefix("q")
    if plain not in TYPES:
        raise StageError(f"a tensor override names an unsupported type: {name!r}", hint=", ".join(TYPES))
    return TYPES[plain]
