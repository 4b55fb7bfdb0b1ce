"""Quantise weights, and activations as they come, with ONNX Runtime."""
