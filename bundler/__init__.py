"""bundler turns a trained ONNX model into a verified, self-contained bundle for a device."""

__version__ = "0.1.0"
