"""Simplify a graph with onnxscript's optimiser."""
