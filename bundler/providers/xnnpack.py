"""XNNPACK."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="xnnpack",
    runtime_name="XnnpackExecutionProvider",
    title="XNNPACK",
    package="onnxruntime-android",
)
