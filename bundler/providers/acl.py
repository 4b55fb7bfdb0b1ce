"""Arm Compute Library."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="acl",
    runtime_name="ACLExecutionProvider",
    title="Arm Compute Library",
    package="",
)
