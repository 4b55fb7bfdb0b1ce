"""DirectML: any GPU of Windows that has DirectX 12.

Options and values as the libraries of onnxruntime-directml 1.24.4 spell them; it ignores any other. The runtime turns
memory patterns and parallel execution off for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bundler.providers.knowledge import Availability, NeedRule, Numerics, OptionTable, Presence, ProviderKnowledge
from bundler.providers.rules import choice, whole

_BY_SESSION = '`session_config."ep.dml.…"` of the runtime, which bundler does not set'

_OPTIONS = (
    choice(
        "device_filter",
        ("gpu", "any", "npu"),
        "Kind of device; any and npu need a build that lists NPUs.",
        default="gpu",
    ),
    whole("device_id", "Which graphics adapter, in the order of Windows; 0 is the one that the display hangs on."),
    # The provider knows these words only: 1 and 0 are not among them.
    choice(
        "disable_metacommands",
        ("true", "false"),
        "Leave out the driver's own kernels, where they are faulty; as text.",
        default="false",
    ),
    choice(
        "performance_preference",
        ("default", "high_performance", "minimum_power"),
        "Which adapter to prefer where there are two.",
        default="default",
    ),
)


def _check(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key in ("performance_preference", "device_filter"):
        if "device_id" in options and key in options:
            yield key, "chooses a device, and device_id has chosen it; remove one of the two"


PROVIDER = ProviderKnowledge(
    name="directml",
    runtime_name="DmlExecutionProvider",
    title="DirectML",
    package="onnxruntime-directml",
    options=OptionTable(
        rules=_OPTIONS,
        replaced={
            "enable_graph_capture": _BY_SESSION,
            "disable_graph_fusion": _BY_SESSION,
            "disable_memory_arena": _BY_SESSION,
            "enable_mem_pattern": "nothing: the runtime turns memory patterns off for it",
            "use_fp16": "`precision.method` of the profile",
        },
        check=_check,
    ),
    validation_provider="cpu",
    numerics=Numerics(
        # Half precision is twice as fast or more on GPUs; what overflows there is kept in full precision by the search.
        precisions=("mixed-fp16", "fp16", "static-int8-full", "weights-4bit", "weights-4bit-gptq"),
        tries=("mixed-fp16", "weights-4bit"),
    ),
    presence=Presence(
        availability=(
            Availability(
                package="onnxruntime-directml",
                versions="<=1.24.4",
                platforms=("windows/x64",),
                source="package index: 1.24.4 is the newest, with wheels of win_amd64 alone",
            ),
            Availability(
                package="onnxruntime-windowsml",
                versions=">=1.23.2",
                platforms=("windows/x64", "windows/arm64"),
                source="package index: 1.23.2.202512041916 to 1.30.0.202609102321; the libraries of 1.24.5, 1.28.3 and "
                "1.30.0 have the options, and DirectML.dll is beside them",
            ),
        ),
        gone="DirectML gets no new features: onnxruntime-directml stays at 1.24.4, and "
        "onnxruntime-windowsml also has it",
        instead="onnxruntime-windowsml as runtime.package; webgpu-native, a plugin for newer runtimes; "
        "tensorrt-rtx on NVIDIA's, openvino on Intel's devices",
        needs=(
            NeedRule(
                what="a driver for DirectX 12",
                check="dxdiag, Display: Feature Levels",
                source="ONNX Runtime documentation, DirectML Execution Provider",
            ),
        ),
    ),
)
