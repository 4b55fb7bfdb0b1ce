"""Apache TVM."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="tvm",
    runtime_name="TvmExecutionProvider",
    title="Apache TVM",
    package="",
)
