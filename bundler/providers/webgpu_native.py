"""WebGPU (native)."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="webgpu-native",
    runtime_name="WebGpuExecutionProvider",
    title="WebGPU (native)",
    package="onnxruntime-ep-webgpu",
)
