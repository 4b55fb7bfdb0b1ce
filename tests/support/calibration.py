"""Calibration sets on disk, and ONNX Runtime's quantiser as people run it by hand."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from bundler.onnxkit.golden import Sample, write_index, write_sample
from bundler.onnxkit.quantization.reference import METHODS, TYPES
from bundler.onnxkit.signatures import model_signature

Feed = dict[str, np.ndarray]
FORMATS = {"qdq": QuantFormat.QDQ, "qoperator": QuantFormat.QOperator}


def write_set(model: Path, feeds: Sequence[Feed], folder: Path) -> Path:
    """The samples in the form in which a stage reads them; answers the path of `index.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    signature = model_signature(onnx.load(model, load_external_data=False))
    entries = [
        write_sample(folder, index, Sample(name=f"sample {index}", inputs=feed, outputs={}), signature)
        for index, feed in enumerate(feeds)
    ]
    write_index(folder, entries, seed=None, unstable=())
    return folder / "index.json"


def normal_feeds(name: str, shape: tuple[int, ...], count: int = 6, *, seed: int = 0) -> list[Feed]:
    """Seeded samples whose reach grows, so that no sample alone shows every range."""
    generator = np.random.default_rng(seed)
    return [{name: (generator.standard_normal(shape) * (1 + index / 3)).astype(np.float32)} for index in range(count)]


class Feeds(CalibrationDataReader):
    """Samples as the reference reads them."""

    def __init__(self, feeds: Sequence[Feed]) -> None:
        self._feeds = iter(feeds)

    def get_next(self) -> Feed | None:
        return next(self._feeds, None)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)


def preprocess_by_hand(model: Path, target: Path, **options: Any) -> Path:
    """What `python -m onnxruntime.quantization.preprocess` writes."""
    with _silence():
        quant_pre_process(model, target, **options)
    return target


def quantize_by_hand(
    model: Path,
    feeds: Sequence[Feed],
    target: Path,
    *,
    form: str = "qdq",
    calibration: str = "minmax",
    types: tuple[str, str] = ("uint8", "int8"),
    extra: dict[str, Any] | None = None,
    **options: Any,
) -> bytes:
    """The bytes that `onnxruntime.quantization.quantize_static` writes."""
    with _silence():
        quantize_static(
            model,
            target,
            Feeds(feeds),
            quant_format=FORMATS[form],
            calibrate_method=METHODS[calibration],
            activation_type=TYPES[types[0]],
            weight_type=TYPES[types[1]],
            extra_options=dict(extra or {}),
            **options,
        )
    return target.read_bytes()


def quantize_dynamic_by_hand(model: Path, target: Path, *, weight_type: str = "int8", **options: Any) -> bytes:
    """The bytes that `onnxruntime.quantization.quantize_dynamic` writes."""
    with _silence():
        quantize_dynamic(model, target, weight_type=TYPES[weight_type], **options)
    return target.read_bytes()
