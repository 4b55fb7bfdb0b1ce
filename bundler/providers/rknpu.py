"""Rockchip's first NPU (RK1808), in custom builds of ONNX Runtime."""

from __future__ import annotations

from bundler.providers.knowledge import GraphRules, Numerics, OptionTable, Presence, ProviderKnowledge, SizeRule

PROVIDER = ProviderKnowledge(
    name="rknpu",
    runtime_name="RknpuExecutionProvider",
    title="Rockchip NPU",
    package="",
    options=OptionTable(
        # None: the provider is appended without any.
        rules=(),
    ),
    validation_provider="cpu",
    numerics=Numerics(
        # QLinearConv in uint8 is the one quantised operator that it has.
        precisions=("static-int8",),
    ),
    presence=Presence(
        gone="No published package has it; the source of the runtime 1.31.1 still does, for the RK1808 alone "
        "(build with --use_rknpu), and not for the NPUs of RK3566, RK3576 or RK3588",
        instead="Rockchip's own RKNN toolkit and runtime, or cpu",
    ),
    graph=GraphRules(
        free_sizes=(SizeRule(sizes="fixed"),),
    ),
)
