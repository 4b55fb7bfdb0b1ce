"""Values of constants that stand in a model's file, for all that reads a model's structure."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper


def read_constant(tensor: TensorProto) -> np.ndarray | None:
    """The values of a tensor whose data stands whole in the tensor itself; None for all others: data that is elsewhere
    (the library would look for its file in the current folder), that was left out on reading, or that does not fit the
    type and the sizes that are declared.
    """
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        return None
    try:
        values: np.ndarray = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError):  # what malformed tensors end in there
        return None
    return values
