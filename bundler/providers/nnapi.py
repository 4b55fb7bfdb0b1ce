"""Android NNAPI."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="nnapi",
    runtime_name="NnapiExecutionProvider",
    title="Android NNAPI",
    package="onnxruntime-android",
)
