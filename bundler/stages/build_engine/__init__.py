"""Build an engine of TensorRT for RTX, with no GPU."""
