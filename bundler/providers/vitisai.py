"""AMD Vitis AI."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="vitisai",
    runtime_name="VitisAIExecutionProvider",
    title="AMD Vitis AI",
    package="onnxruntime-vitisai",
)
