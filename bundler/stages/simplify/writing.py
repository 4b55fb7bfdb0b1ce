"""Write the model that a simplifier returned."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import ModelProto


def write_model(model: ModelProto, target: Path, data: str | None) -> None:
    """Write `model` to `target`, with all weights in the file `data` beside it, or embedded when `data` is None."""
    if data is None:
        target.write_bytes(model.SerializeToString(deterministic=True))
    else:
        onnx.save_model(model, str(target), save_as_external_data=True, location=data, size_threshold=0)
