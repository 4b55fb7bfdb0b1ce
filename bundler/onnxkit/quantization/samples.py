"""Calibration samples, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnxruntime

from bundler.model.errors import StageError
from bundler.onnxkit.golden import GoldenSet, Sample, read_golden
from bundler.onnxkit.quantization.reference import no_memory
from bundler.onnxkit.sessions import RUNTIME_ERRORS, clean_message

Progress = Callable[[int, int], None]
"""Called with the number of finished samples and their total."""


def open_samples(path: Path) -> GoldenSet:
    """The set whose `index.json` is at `path`. Raises `StageError` if it is empty or cannot be read."""
    samples = read_golden(path)
    if not len(samples):
        raise StageError("there are no samples for calibration", hint="give some: --calibration PATH")
    return samples


def run_sample(session: onnxruntime.InferenceSession, sample: Sample, names: list[str] | None = None) -> list[Any]:
    """The outputs `names` (None: all), in the model's order. Raises `StageError` with the sample's name."""
    try:
        values: list[Any] = session.run(names, dict(sample.inputs))
    except MemoryError as cause:
        raise no_memory() from cause
    except RUNTIME_ERRORS as cause:
        text = clean_message(cause)
        if "llocate memory" in text or "bad_alloc" in text:
            raise no_memory() from cause
        hint = "samples must have the names, types and shapes of the model's inputs"
        raise StageError(f"the model cannot run on the sample {sample.name!r}", details=(text,), hint=hint) from cause
    return values
