"""NVIDIA TensorRT."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="tensorrt",
    runtime_name="TensorrtExecutionProvider",
    title="NVIDIA TensorRT",
    package="onnxruntime-gpu",
)
