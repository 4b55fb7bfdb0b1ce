"""Write what a simplifier answered."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import ModelProto


def write_model(model: ModelProto, target: Path, data: str | None) -> None:
    """`model` to `target`, with every weight in the file `data` beside it, or in the model when none is named."""
    if data is None:
        target.write_bytes(model.SerializeToString(deterministic=True))
    else:
        onnx.save_model(model, str(target), save_as_external_data=True, location=data, size_threshold=0)
