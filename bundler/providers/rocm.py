"""AMD ROCm."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="rocm",
    runtime_name="ROCMExecutionProvider",
    title="AMD ROCm",
    package="onnxruntime-rocm",
)
