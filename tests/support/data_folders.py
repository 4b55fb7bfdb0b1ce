"""Folders of data as users have them, and calls of the stage that prepares them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from bundler.model.errors import UsageError
from bundler.model.stage import StageResult
from bundler.onnxkit.golden import GoldenSet, read_golden
from tests.support import models
from tests.support.stage_calls import call_stage


def prepare(output: Path, model: Path, data: Path | None, **options: Any) -> tuple[StageResult, GoldenSet]:
    """The stage's result and the set that it wrote into the fresh folder `output`."""
    inputs = {"model": model} | ({"data": data} if data else {}) | options.pop("inputs", {})
    result = call_stage("prepare_data", output, inputs, **options)
    assert result.entry == "index.json"
    return result, read_golden(output / result.entry)


def refuse(output: Path, model: Path, data: Path | None, **options: Any) -> UsageError:
    """The error that the stage ends with."""
    with pytest.raises(UsageError) as caught:
        prepare(output, model, data, **options)
    return caught.value


def image_model(folder: Path, shape: list[Any] | None = None, element: int = TensorProto.FLOAT) -> Path:
    """An Identity over pictures."""
    return models.save(models.passing(element, shape or ["batch", 3, 8, 8]), folder)


def pixels(height: int, width: int, channels: int = 3, seed: int = 0) -> np.ndarray:
    """Seeded bytes."""
    shape = (height, width, channels) if channels > 1 else (height, width)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def write_wave(path: Path, values: np.ndarray, rate: int = 16000, *, bits: int = 16, coding: int = 1) -> Path:
    """A WAV file of float values [frames] or [frames, channels]."""
    values = values[:, None] if values.ndim == 1 else values
    data = _encode(values, bits, coding)
    width = values.shape[1] * bits // 8
    header = struct.pack("<HHIIHH", coding, values.shape[1], rate, rate * width, width, bits)
    chunks = b"fmt " + struct.pack("<I", len(header)) + header + b"data" + struct.pack("<I", len(data)) + data
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks)
    return path


def _encode(values: np.ndarray, bits: int, coding: int) -> bytes:
    if coding == 3:
        return values.astype(f"<f{bits // 8}").tobytes()
    if bits == 8:
        return (values * 127 + 128).round().astype(np.uint8).tobytes()
    whole = (values * ((1 << (bits - 1)) - 1)).round().astype("<i4")
    if bits == 24:
        return whole.view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
    return whole.astype(f"<i{bits // 8}").tobytes()
