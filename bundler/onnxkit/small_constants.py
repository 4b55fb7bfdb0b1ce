"""Read constants that are stored in a model's file."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper


def read_constant(tensor: TensorProto) -> np.ndarray | None:
    """The values of a tensor that contains all its data; None for all others: external data (the library would look for
    its file in the current folder), data that was not read, or data that does not fit the declared type and sizes.
    """
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        return None
    try:
        values: np.ndarray = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError):  # malformed tensors
        return None
    return values
