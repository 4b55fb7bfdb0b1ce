"""Qualcomm QNN."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="qnn",
    runtime_name="QNNExecutionProvider",
    title="Qualcomm QNN",
    package="onnxruntime-qnn",
)
