"""Give the model's input the sizes that the application uses: accelerators of phones take fixed ones only.

    python fix_sizes.py MODEL.onnx DEST.onnx

The model as published leaves batch, height and width open, and does not name them, so `--dim` cannot fix them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import onnx
from classify import HEIGHT, WIDTH

SHAPE = (1, 3, HEIGHT, WIDTH)


def fix_sizes(model: onnx.ModelProto) -> None:
    """Set the one input's shape; what was noted of other values' shapes is dropped, for it follows from that."""
    dimensions = model.graph.input[0].type.tensor_type.shape.dim
    for dimension, size in zip(dimensions, SHAPE, strict=True):
        dimension.dim_value = size
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = SHAPE[0]
    del model.graph.value_info[:]


def main() -> int:
    parser = argparse.ArgumentParser(description="Fix the sizes of the model's input.")
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("destination", type=Path, metavar="DEST")
    options = parser.parse_args()
    model = onnx.load(options.model)
    fix_sizes(model)
    options.destination.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, options.destination)
    print(f"{options.destination}  input of {list(SHAPE)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
