"""Rockchip NPU."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="rknpu",
    runtime_name="RknpuExecutionProvider",
    title="Rockchip NPU",
    package="",
)
