"""Quantise weights and activations with ONNX Runtime, by ranges that samples show."""
