"""ONNX Runtime's own quantiser, driven in constant memory. Imported in workers only."""
