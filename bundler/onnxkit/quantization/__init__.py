"""Run ONNX Runtime's own quantiser in constant memory. Imported in workers only."""
