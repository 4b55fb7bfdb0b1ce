"""Quantise weights, and activations at run time, with ONNX Runtime."""
