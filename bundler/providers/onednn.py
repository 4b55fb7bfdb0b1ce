"""Intel oneDNN."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="onednn",
    runtime_name="DnnlExecutionProvider",
    title="Intel oneDNN",
    package="",
)
