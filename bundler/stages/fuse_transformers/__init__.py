"""Fuse the attention, normalisation and activation subgraphs of a transformer into ONNX Runtime's own operators."""
