"""DirectML."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="directml",
    runtime_name="DmlExecutionProvider",
    title="DirectML",
    package="onnxruntime-directml",
)
