"""Intel OpenVINO."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="openvino",
    runtime_name="OpenVINOExecutionProvider",
    title="Intel OpenVINO",
    package="onnxruntime-ep-openvino",
)
