"""onnxscript's optimiser: folds constants, inlines functions, removes unused nodes."""

from __future__ import annotations

import logging
from pathlib import Path

import onnx_ir
import onnxscript.optimizer


def simplify(source: Path, target: Path, data: str | None) -> None:
    """Write the simplified model to `target`, and its weights into the file `data` beside it unless that is None."""
    for name in ("onnx_ir", "onnxscript"):  # it warns about every initializer that it does not fold
        logging.getLogger(name).setLevel(logging.ERROR)
    model = onnx_ir.load(source)
    onnxscript.optimizer.optimize(model)
    onnx_ir.save(model, target, external_data=data)
