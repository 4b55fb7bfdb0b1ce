"""onnxsim: folds constants and runs the passes of onnx/optimizer until nothing changes."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxsim  # type: ignore[import-not-found]

from bundler.stages.simplify.writing import write_model


def simplify(source: Path, target: Path, data: str | None) -> None:
    """Write the simplified model to `target`, and its weights into the file `data` beside it unless that is None."""
    # Its own check needs a package that its environment lacks; the comparison with the golden set follows anyway.
    model, _ = onnxsim.simplify(onnx.load(source), check_n=0, certify=False)
    write_model(model, target, data)
