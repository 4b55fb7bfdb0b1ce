"""NVIDIA CUDA."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="cuda",
    runtime_name="CUDAExecutionProvider",
    title="NVIDIA CUDA",
    package="onnxruntime-gpu",
)
