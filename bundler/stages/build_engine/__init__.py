"""Build an engine of TensorRT for RTX without a GPU."""
