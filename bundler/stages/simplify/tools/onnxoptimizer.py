"""onnx/optimizer: its fusion and elimination passes, until nothing changes."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxoptimizer  # type: ignore[import-not-found]

from bundler.stages.simplify.writing import write_model


def simplify(source: Path, target: Path, data: str | None) -> None:
    """Write the simplified model to `target`, and its weights into the file `data` beside it unless that is None."""
    write_model(onnxoptimizer.optimize(onnx.load(source), fixed_point=True), target, data)
