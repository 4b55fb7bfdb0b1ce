"""Arm NN."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="armnn",
    runtime_name="ArmNNExecutionProvider",
    title="Arm NN",
    package="",
)
