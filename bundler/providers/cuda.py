"""NVIDIA CUDA.

The keys are strings of the provider's library in onnxruntime-gpu 1.31.1, the defaults of its source. A key that it does
not know ends the provider, and the runtime goes on without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from bundler.providers.knowledge import Availability, NeedRule, Numerics, OptionTable, Presence, ProviderKnowledge
from bundler.providers.methods import LOW_BIT_WEIGHTS
from bundler.providers.rules import ADDRESS, STREAM, choice, flag, is_set, text, whole

DEVICE_MEMORY = "cuda"
"""The runtime's name of a CUDA device's memory, which all of NVIDIA's providers keep tensors in."""

GPU_RUNTIME = (
    Availability(
        package="onnxruntime-gpu",
        platforms=("linux/x64", "windows/x64"),
        source="wheels of onnxruntime-gpu 1.31.1, for CUDA 13 and cuDNN 9",
    ),
)
"""The whole runtime that has both of NVIDIA's older providers."""

_EXTRAS = "the extras `cuda` and `cudnn` of onnxruntime-gpu, read from 1.22.0 to 1.31.1: for CUDA 13 from 1.27.0 on"
_BY_PIP = "or pip show {} after `pip install onnxruntime-gpu[cuda,cudnn]`"

DRIVER = NeedRule(
    what="NVIDIA's driver",
    version="580 or later",
    check="nvidia-smi",
    libraries={"linux": ("libcuda.so.1",)},
    runtime_versions=">=1.27",
    source="CUDA Toolkit Release Notes, drivers for minor version compatibility",
)


def for_each_system(rule: NeedRule, *libraries: str) -> tuple[NeedRule, NeedRule]:
    """A requirement with its check for Linux, and the same for Windows, whose names of the libraries are `libraries`.

    There, they are only looked for along PATH, which Python does not search: a loader cannot look for them.
    """
    return (
        replace(rule, systems=("linux",)),
        replace(rule, systems=("windows",), libraries={}, check=f"where {' '.join(libraries)}"),
    )


def _cuda_13(package: str, *more: str, runtimes: str, source: str) -> NeedRule:
    """CUDA 13, whose runtime pip knows as `package`; `more` are libraries beyond those of every such runtime.

    A library stands after those that it needs: loaders load them in this order.
    """
    libraries = ("libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcurand.so.10", "libnvrtc.so.13")
    return NeedRule(
        what="CUDA",
        version="13",
        check=f"ldconfig -p | grep libcudart.so.13, {_BY_PIP.format(package)}",
        libraries={"linux": (*libraries, *more)},
        runtime_versions=runtimes,
        source=source,
    )


def _cudnn(package: str, runtimes: str) -> NeedRule:
    """CuDNN 9, which pip knows as `package`."""
    return NeedRule(
        what="cuDNN",
        version="9",
        check=f"ldconfig -p | grep libcudnn.so.9, {_BY_PIP.format(package)}",
        libraries={"linux": ("libcudnn.so.9",)},
        runtime_versions=runtimes,
        source=_EXTRAS,
    )


_CUDA_13_WINDOWS = ("cublas64_13.dll", "cublasLt64_13.dll")
"""What the provider's library of onnxruntime-gpu 1.31.1 for Windows imports of CUDA."""

CUDA_NEEDS = (
    DRIVER,
    replace(DRIVER, version="525 or later", runtime_versions=">=1.19,<1.27"),
    *for_each_system(
        _cuda_13(
            "nvidia-cuda-runtime",
            runtimes=">=1.28",
            source=f"{_EXTRAS}; what the provider's library of 1.31.1 is linked to, and libnvrtc, which it opens by "
            "name",
        ),
        *_CUDA_13_WINDOWS,
    ),
    *for_each_system(
        _cuda_13(
            "nvidia-cuda-runtime-cu13",
            "libcufft.so.12",
            runtimes=">=1.27,<1.28",
            source=f"{_EXTRAS}; what the provider's library of 1.27.0 is linked to",
        ),
        *_CUDA_13_WINDOWS,
    ),
    NeedRule(what="CUDA", version="12", runtime_versions=">=1.19,<1.27", source=_EXTRAS),
    *for_each_system(_cudnn("nvidia-cudnn-cu13", ">=1.27"), "cudnn64_9.dll"),
    *for_each_system(_cudnn("nvidia-cudnn-cu12", ">=1.19,<1.27"), "cudnn64_9.dll"),
    NeedRule(
        what="zlib, which cuDNN uses",
        check="ldconfig -p | grep libz.so.1",
        libraries={"linux": ("libz.so.1",)},
        systems=("linux",),
        runtime_versions=">=1.19",
        source="NVIDIA cuDNN documentation, Installing cuDNN Backend on Linux: Installing Zlib",
    ),
)
"""NVIDIA's own libraries that both of the older providers are linked to: no package of the runtime carries them."""


_ARM_RUNTIME = Availability(
    package="onnxruntime-gpu",
    versions=">=1.29",
    platforms=("linux/arm64",),
    source="wheels of onnxruntime-gpu 1.29.0 to 1.31.1 for Linux on Arm (none before 1.29): without TensorRT, and "
    "1.31.1 with code for compute capability 8.9, 9.0, 12.0 and 12.1 alone (read in its library)",
)

_MEMORY = (
    whole("device_id", "Which GPU, by CUDA's own numbers."),
    whole(
        "gpu_mem_limit", "Maximum size of the runtime's arena on the GPU, in bytes; default: all memory.", default=""
    ),
    choice(
        "arena_extend_strategy",
        ("kNextPowerOfTwo", "kSameAsRequested"),
        "How the arena grows: by doubling, or by the requested size.",
        default="kNextPowerOfTwo",
    ),
    text("gpu_external_alloc", "Function that takes memory.", default="0", decided=ADDRESS),
    text("gpu_external_free", "Function that gives memory back.", default="0", decided=ADDRESS),
    text("gpu_external_empty_cache", "Function that empties the cache of memory.", default="0", decided=ADDRESS),
)

_CONVOLUTIONS = (
    choice(
        "cudnn_conv_algo_search",
        ("EXHAUSTIVE", "HEURISTIC", "DEFAULT"),
        "How the algorithm of a convolution is found: by timing all, by rule, or always the same.",
        default="EXHAUSTIVE",
    ),
    flag(
        "cudnn_conv_use_max_workspace",
        "Let convolutions use as much memory as the fastest algorithm needs.",
        default="1",
    ),
    flag("cudnn_conv1d_pad_to_nc1d", "Pad convolutions over one axis as `N,C,1,D`; otherwise as `N,C,D,1`."),
    flag("fuse_conv_bias", "Add bias and activation inside the convolution."),
    flag("prefer_nhwc", "Lay convolutions out with the channels last."),
    flag("enable_cudnn", "Load cuDNN; without it convolutions run on other kernels.", default="1"),
)

_RUNNING = (
    flag("enable_cuda_graph", "Record the first run and replay it after; fixed shapes, and bound inputs and outputs."),
    flag("do_copy_in_default_stream", "Copy in the stream that computes; anything else can be a race.", default="1"),
    *STREAM,
    flag("use_ep_level_unified_stream", "One stream for the whole session."),
    flag("tunable_op_enable", "Use kernels that were chosen by timing."),
    flag("tunable_op_tuning_enable", "Time kernels in the first runs."),
    whole("tunable_op_max_tuning_duration_ms", "Time limit for timing a kernel, in milliseconds; 0 is no limit."),
)

_NUMBERS = (
    flag("use_tf32", "Multiply in TF32: 10 bits of mantissa, on GPUs from compute capability 8.0 on.", default="1"),
    flag("enable_skip_layer_norm_strict_mode", "Sum normalisations of layers in single precision."),
    whole("sdpa_kernel", "Bit mask of the attention kernels to choose from; 0 is the runtime's choice."),
)


def _check(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    tuning = options.get("tunable_op_tuning_enable", "0")
    if is_set(tuning) and not is_set(options.get("tunable_op_enable", "0")):
        yield "tunable_op_tuning_enable", "has no effect without `tunable_op_enable`"
    if "tunable_op_max_tuning_duration_ms" in options and not is_set(tuning):
        yield "tunable_op_max_tuning_duration_ms", "has no effect without `tunable_op_tuning_enable`"
    if not is_set(options.get("enable_cudnn", "1")):
        for key in sorted(key for key in options if key.startswith("cudnn_")):
            yield key, "has no effect without `enable_cudnn`"


def _rounds(options: Mapping[str, str]) -> Literal["none", "half"]:
    """TF32 keeps as many bits of a factor as half precision does, and is on unless it is turned off."""
    return "half" if is_set(options.get("use_tf32", "1")) else "none"


PROVIDER = ProviderKnowledge(
    name="cuda",
    runtime_name="CUDAExecutionProvider",
    title="NVIDIA CUDA",
    package="onnxruntime-gpu",
    options=OptionTable(
        rules=(*_MEMORY, *_CONVOLUTIONS, *_RUNNING, *_NUMBERS),
        replaced={
            "cuda_mem_limit": "`gpu_mem_limit`",
            "cudnn_conv_algo": "`cudnn_conv_algo_search`",
            "use_fp16": "`precision.method`, for example mixed-fp16",
            "fp16": "`precision.method`, for example mixed-fp16",
            "do_copy_in_compute_stream": "`do_copy_in_default_stream`",
        },
        check=_check,
    ),
    device_memory=DEVICE_MEMORY,
    numerics=Numerics(
        # Half precision, and weights of few bits, for which it has kernels. Not int8: of quantised operators it
        # has few, so that quantise and dequantise nodes run as such around operators in floating point.
        precisions=("mixed-fp16", "fp16", "bf16", "fp16-weights", "bf16-weights", *LOW_BIT_WEIGHTS),
        tries=("mixed-fp16", "weights-4bit"),
        rounds=_rounds,
        exact={"use_tf32": "0"},
        tf32=True,
    ),
    presence=Presence(
        availability=(*GPU_RUNTIME, _ARM_RUNTIME),
        needs=CUDA_NEEDS,
    ),
)
