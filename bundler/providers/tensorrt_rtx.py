"""NVIDIA TensorRT for RTX."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="tensorrt-rtx",
    runtime_name="NvTensorRTRTXExecutionProvider",
    title="NVIDIA TensorRT for RTX",
    package="onnxruntime-ep-nv-tensorrt-rtx-cu13",
)
