"""AMD MIGraphX."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="migraphx",
    runtime_name="MIGraphXExecutionProvider",
    title="AMD MIGraphX",
    package="onnxruntime-migraphx",
)
