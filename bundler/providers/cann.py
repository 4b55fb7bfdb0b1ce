"""Huawei CANN."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="cann",
    runtime_name="CANNExecutionProvider",
    title="Huawei CANN",
    package="onnxruntime-cann",
)
