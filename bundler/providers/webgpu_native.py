"""Any GPU through WebGPU, outside of browsers: Direct3D 12, Vulkan or Metal.

A plugin beside the plain runtime. Options as the library of onnxruntime-ep-webgpu 0.4.0 names them; on Linux it needs
the system's Vulkan loader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bundler.providers.knowledge import (
    Availability,
    NeedRule,
    Numerics,
    OptionRule,
    OptionTable,
    Presence,
    ProviderKnowledge,
)
from bundler.providers.rules import ADDRESS, choice, flag, is_set, text, whole
from bundler.providers.webgpu import UNEVEN_OPTIONS

_MODES = ("disabled", "lazyRelease", "simple", "bucket")
_UNKNOWN = "its library names it, but its values are not documented"


def _cache(key: str, of: str, default: str) -> OptionRule:
    return choice(key, _MODES, f"How {of} are kept for the next use.", default=default)


_OPTIONS = (
    choice("dawnBackendType", ("D3D12", "Vulkan"), "Graphics interface under Windows.", default="the system's"),
    text("dawnProcTable", "The application's own table of Dawn.", decided=ADDRESS),
    _cache("defaultBufferCacheMode", "all other buffers", "disabled"),
    whole("deviceId", "Context that sessions share; no number of a GPU."),
    flag("enableGraphCapture", "Record the GPU's commands in the first run and replay them; fixed shapes, GPU only."),
    flag("enableInt64", "Compute 64-bit integers on the GPU; on with graph capture."),
    flag("enablePIXCapture", "Traces for a debugger of Windows.", decided="only builds for debugging have it"),
    text("enableRobustness", "Bounds checks of the graphics interface.", decided=_UNKNOWN),
    text("forceCpuNodeNames", "Names of nodes that stay on the CPU, one a line."),
    text("kvCacheQuantizationBits", "Bits of a language model's cache.", decided=_UNKNOWN),
    text("maxNumPendingDispatches", "Commands that are collected before the GPU gets them.", decided=_UNKNOWN),
    whole("maxStorageBufferBindingSize", "Maximum size of one buffer in bytes; 0 is the limit of the adapter."),
    whole("multiRotaryCacheConcatOffset", "Offset in the joined caches of long and short rotary embeddings."),
    choice(
        "powerPreference",
        ("high-performance", "low-power"),
        "Which of two GPUs to use.",
        default="high-performance",
    ),
    choice("preferredLayout", ("NCHW", "NHWC"), "Memory layout of convolutions and their like.", default="NHWC"),
    flag("preserveDevice", "Keep the GPU's context after the last session."),
    _cache("queryResolveBufferCacheMode", "buffers of timings", "disabled"),
    text("sessionBufferPoolGenerations", "How long a session's buffers are kept.", decided=_UNKNOWN),
    _cache("storageBufferCacheMode", "freed tensors", "bucket"),
    _cache("uniformBufferCacheMode", "small parameters", "simple"),
    choice(
        "validationMode",
        ("disabled", "wgpuOnly", "basic", "full"),
        "How much is checked before work is handed to the GPU.",
        default="basic",
    ),
    text("webgpuDevice", "The application's own device.", decided=ADDRESS),
    text("webgpuInstance", "The application's own instance.", decided=ADDRESS),
)


def _check(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not is_set(options.get("enableGraphCapture", "0")):
        return
    if options.get("forceCpuNodeNames"):
        yield "forceCpuNodeNames", "graph capture needs all nodes on the GPU; turn enableGraphCapture off"
    if "enableInt64" in options and not is_set(options["enableInt64"]):
        yield "enableInt64", "enableGraphCapture turns it on"


PROVIDER = ProviderKnowledge(
    name="webgpu-native",
    runtime_name="WebGpuExecutionProvider",
    title="WebGPU (native)",
    package="onnxruntime-ep-webgpu",
    options=OptionTable(
        rules=_OPTIONS,
        replaced={
            "device_id": "nothing: the plugin's devices are chosen, not numbered; "
            "`deviceId` is the number of a context",
            "enable_graph_capture": "`enableGraphCapture`",
            "preferred_layout": "`preferredLayout`",
            "power_preference": "`powerPreference`",
            "deviceType": "nothing: it takes the GPU",
        },
        check=_check,
    ),
    validation_provider="cpu",
    uneven_options=UNEVEN_OPTIONS,
    numerics=Numerics(
        # As in browsers: FP16 may overflow on a GPU where it does not on a CPU, so the method that searches is tried.
        precisions=("mixed-fp16", "fp16", "weights-4bit", "weights-4bit-gptq"),
        tries=("mixed-fp16", "weights-4bit"),
    ),
    presence=Presence(
        availability=(
            Availability(
                package="onnxruntime-ep-webgpu",
                versions=">=0.1,<=0.4.0",
                platforms=("linux/x64", "linux/arm64", "windows/x64", "windows/arm64", "macos/arm64"),
                module="onnxruntime_ep_webgpu",
                runtime_versions=">=1.24.4",
                source="package index, and the metadata of 0.4.0, which ask for a runtime of 1.24.4 or later",
            ),
            Availability(
                package="onnxruntime-webgpu",
                versions="<=1.27.0",
                platforms=("linux/x64", "windows/x64", "macos/arm64"),
                source="package index: 1.27.0 is the newest; a runtime with the provider built in",
            ),
        ),
        instead="runtime.plugins with onnxruntime-ep-webgpu and onnxruntime 1.24.4 or later",
        needs=(
            NeedRule(
                what="a Vulkan loader and the GPU's driver for it",
                check="vulkaninfo --summary",
                libraries={"linux": ("libvulkan.so.1",)},
                systems=("linux",),
                source="the name in the library of onnxruntime-ep-webgpu 0.4.0",
            ),
            NeedRule(
                what="a driver for DirectX 12, or for Vulkan where dawnBackendType asks for it",
                check="dxdiag, Display: Feature Levels",
                systems=("windows",),
                source="the values of the option dawnBackendType",
            ),
        ),
    ),
)
