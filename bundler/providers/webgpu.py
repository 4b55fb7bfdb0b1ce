"""The GPU in a browser, through WebGPU.

The options are those that onnxruntime-web 1.30.0 hands to its WebGPU provider; its native siblings have more.
"""

from __future__ import annotations

from bundler.providers.knowledge import (
    GraphRules,
    Lacks,
    NeedRule,
    Numerics,
    OptionRule,
    OptionTable,
    Presence,
    ProviderKnowledge,
    RuntimeBuild,
)

_CACHE_MODES = ("disabled", "lazyRelease", "simple", "bucket")


def _cache(key: str, of: str, default: str) -> OptionRule:
    return OptionRule(key=key, values=_CACHE_MODES, default=default, meaning=f"How {of} are kept for the next use.")


GPU_BUILDS = (
    RuntimeBuild(
        name="jspi",
        module="ort.jspi.bundle.min.mjs",
        binary="ort-wasm-simd-threaded.jspi.wasm",
        browsers="browsers in which WebAssembly can wait for promises (JavaScript Promise Integration), as Chrome and "
        "Edge do from version 137 on",
    ),
    RuntimeBuild(
        name="asyncify",
        module="ort.webgpu.bundle.min.mjs",
        binary="ort-wasm-simd-threaded.asyncify.wasm",
        browsers="the other browsers that have the provider: the same, with the waiting compiled in",
    ),
)
"""The builds of the web runtime with providers that wait for a device."""

UNEVEN_OPTIONS = {"preferredLayout": "NCHW"}
"""Measured with onnxruntime-web 1.30.0 on Chromium's software adapter, and with onnxruntime-ep-webgpu 0.4.0 on NVIDIA's
H200 under Vulkan: in NHWC, convolutions from 6, 9, 15, 18, 21, 27, 30 or 33 channels to 4, 8, 16 or 32, with kernels
larger than 1x1, have errors as large as their values; all other numbers of channels that were tried are right, and so
is NCHW. In groups (on the software adapter alone), those to 5, 6, 7, 9, 10 or 13 channels in each of 2, 4 or 8 groups
have such errors; to 2, 3, 4, 8 or 12 channels a group, or to 6 or 7 in each of 3 groups, they are right.
"""

GPU_BUILDS_LACK = Lacks(
    # Measured with onnxruntime-web 1.30.0: these builds open no such model, and no Concat of strings either.
    operators=("ai.onnx.ml.*", "TfIdfVectorizer"),
    strings=True,
    instead="build it for the CPU in a browser (--target web-wasm), whose build of the runtime has them",
)

PROVIDER = ProviderKnowledge(
    name="webgpu",
    runtime_name="webgpu",
    title="WebGPU",
    package="onnxruntime-web",
    options=OptionTable(
        rules=(
            OptionRule(
                key="preferredLayout",
                values=("NCHW", "NHWC"),
                default="NHWC",
                meaning="Memory layout that convolutions and their like are given.",
            ),
            OptionRule(
                key="validationMode",
                values=("disabled", "wgpuOnly", "basic", "full"),
                default="basic",
                meaning="How much is checked before work is handed to the GPU.",
            ),
            _cache("storageBufferCacheMode", "freed tensors", "bucket"),
            _cache("uniformBufferCacheMode", "small parameters", "simple"),
            _cache("queryResolveBufferCacheMode", "buffers of timings", "disabled"),
            _cache("defaultBufferCacheMode", "all other buffers", "disabled"),
        ),
    ),
    presence=Presence(
        # The first waits for the GPU by the engine's own means and is smaller; the second runs where an engine lacks
        # those.
        builds=GPU_BUILDS,
        needs=(NeedRule(what="a browser that offers WebGPU, and a GPU", check="navigator.gpu in the page's console"),),
    ),
    validation_provider="cpu",
    device_memory="gpu-buffer",
    uneven_options=UNEVEN_OPTIONS,
    graph=GraphRules(lacks=GPU_BUILDS_LACK),
    numerics=Numerics(
        lacks_doubles=True,
        half_feature="shader-f16",
        # On a CPU, where precision is judged, half precision does not overflow as it would
        # here, so what is tried is the method whose search rounds as a device does.
        precisions=("mixed-fp16", "fp16", "weights-4bit", "weights-4bit-gptq"),
        tries=("mixed-fp16", "weights-4bit"),
    ),
)
