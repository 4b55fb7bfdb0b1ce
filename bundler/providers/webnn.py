"""The operating system's own inference (NPU, GPU or CPU) in a browser, through WebNN.

The options are those that onnxruntime-web 1.30.0 reads.
"""

from __future__ import annotations

from bundler.providers.knowledge import (
    GraphRules,
    NeedRule,
    Numerics,
    OptionRule,
    OptionTable,
    Presence,
    ProviderKnowledge,
    SizeRule,
)
from bundler.providers.webgpu import GPU_BUILDS, GPU_BUILDS_LACK

PROVIDER = ProviderKnowledge(
    name="webnn",
    runtime_name="webnn",
    title="WebNN",
    package="onnxruntime-web",
    options=OptionTable(
        rules=(
            OptionRule(
                key="deviceType",
                values=("cpu", "gpu", "npu"),
                default="cpu",
                meaning="Kind of device that the browser is asked for.",
            ),
            OptionRule(
                key="powerPreference",
                values=("default", "low-power", "high-performance"),
                default="default",
                meaning="Which of several devices the browser should prefer.",
            ),
        ),
    ),
    presence=Presence(
        builds=GPU_BUILDS,
        needs=(
            NeedRule(
                what="a browser in which WebNN is switched on",
                check="navigator.ml in the page's console",
                source="ONNX Runtime documentation, Using the WebNN Execution Provider",
            ),
        ),
    ),
    validation_provider="cpu",
    device_memory="ml-tensor",
    numerics=Numerics(
        lacks_doubles=True,
        precisions=("mixed-fp16", "fp16"),
        tries=("mixed-fp16",),
    ),
    graph=GraphRules(
        lacks=GPU_BUILDS_LACK,
        # Nodes whose sizes are not all known are refused one by one (source of the runtime), and the CPU runs them.
        free_sizes=(SizeRule(sizes="cpu"),),
    ),
)
