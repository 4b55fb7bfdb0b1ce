"""onnxslim: folds constants by shape inference, fuses and removes nodes, merges equal ones."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxslim

from bundler.stages.simplify.writing import write_model


def simplify(source: Path, target: Path, data: str | None) -> None:
    """Write the simplified model to `target`, and its weights into the file `data` beside it unless that is None."""
    write_model(onnxslim.slim(onnx.load(source)), target, data)
