"""Apple Core ML."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="coreml",
    runtime_name="CoreMLExecutionProvider",
    title="Apple Core ML",
    package="onnxruntime",
)
