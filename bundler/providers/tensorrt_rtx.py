"""NVIDIA TensorRT for RTX: engines for kinds of GPU, built without one.

The keys, values and defaults are those of the header in the wheel of onnxruntime-ep-nv-tensorrt-rtx-cu13 0.5.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from bundler.providers.cuda import DEVICE_MEMORY, DRIVER
from bundler.providers.knowledge import (
    Availability,
    Compiler,
    Deferral,
    GraphRules,
    NeedRule,
    OptionTable,
    Presence,
    ProviderKnowledge,
)
from bundler.providers.rules import (
    ADDRESS,
    BUILDING_PATH,
    DEBUGGING,
    EMBED,
    HERE,
    STREAM,
    flag,
    is_set,
    shape_ranges,
    split_items,
    text,
    whole,
)
from bundler.providers.shape_ranges import check_ranges
from bundler.providers.tensorrt import BUILDER_NUMERICS, REFUSED_OPTIMIZERS

_SHAPES = ("nv_profile_min_shapes", "nv_profile_opt_shapes", "nv_profile_max_shapes")
_BUDGET = re.compile(r"-1|[0-9]{1,18}[BKMG]?|(100|[0-9]{1,2})%")
_TARGET = "`compile = { compute_capabilities = … }` of the variant says which GPUs are built for"

COMPUTE_CAPABILITIES = ("8.6", "8.9", "12.0", "12.1")
"""GPUs that the plugin runs on and the builder builds for: RTX 30, 40 and 50, and DGX Spark. The builder knows 7.5 and
8.0, too, whose engines the plugin would not open."""

_MEMORY = (
    whole("nv_max_workspace_size", "Bytes that building and running may take for scratch; 0 is its own choice."),
    whole("nv_max_shared_mem_size", "Bytes of a multiprocessor's shared memory that a kernel may take; 0 is all."),
    text(
        "nv_weight_streaming_budget", "Weights that stay on the GPU: 0 all, -1 its choice, `512M`, `50%`.", default="0"
    ),
    flag("nv_use_sync_gpu_allocator", "Take memory by `cudaMalloc`, where the asynchronous way is unreliable."),
    flag("nv_persistent_context_memory", "Keep scratch memory between runs instead of allocating it for each run."),
)

_RUNNING = (
    *shape_ranges(*_SHAPES),
    flag("nv_multi_profile_enable", "Several ranges of shapes in one session."),
    flag("enable_cuda_graph", "Record the first run and replay it after; fixed shapes."),
    text("nv_op_types_to_exclude", "Operator types for other providers, separated by commas."),
    whole("nv_multi_rotary_cache_concat_offset", "Token from which on a language model's long rotary cache is used."),
    *STREAM,
    text("user_aux_stream_array", "More such streams.", default="0", decided=ADDRESS),
    whole("nv_length_aux_stream_array", "Their number.", decided=ADDRESS),
    text("VkExternalComputeQueueDataParamsNV_data", "A queue of Vulkan's.", default="0", decided=ADDRESS),
)

_KEEPING = (
    text("nv_runtime_cache_path", "Folder for kernels.", decided="`prewarm` chooses the folder on the device"),
    text("nv_target_sm", "GPU that is built for.", decided=_TARGET),
    flag("nv_use_external_data_initializer", "Take weights from the program.", decided=ADDRESS),
    flag(
        "nv_weight_stripped_engine_enable_experimental", "Engines without weights.", decided="a bundle ships them whole"
    ),
    flag("nv_detailed_build_log", "Log each step of building."),
    flag("nv_enable_profiling", "Time every layer; excludes `enable_cuda_graph`."),
    text("nv_profiling_output_file", "File for those times.", decided=BUILDING_PATH),
    flag("nv_dump_subgraphs", "Write the graphs that were assigned to the provider.", decided=DEBUGGING),
)


def _check(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from check_ranges(options, _SHAPES)
    budget = options.get("nv_weight_streaming_budget", "0")
    if not _BUDGET.fullmatch(budget):
        yield (
            "nv_weight_streaming_budget",
            f"expected 0, -1, bytes such as `512M`, or a share such as `50%`, got {budget[:40]!r}",
        )
    if is_set(options.get("nv_enable_profiling", "0")) and is_set(options.get("enable_cuda_graph", "0")):
        yield "nv_enable_profiling", "turns `enable_cuda_graph` off; choose one"


def _check_compile(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    key, known = "compute_capabilities", ", ".join(COMPUTE_CAPABILITIES)
    asked = split_items(settings.get(key, ""))
    if not asked and is_set(settings.get(HERE.key, "1")):
        yield (
            key,
            f"is missing: name the GPUs that engines are built for ({known}), or compile on the device: here = false",
        )
    for item in [item for item in dict.fromkeys(asked) if item not in COMPUTE_CAPABILITIES][:3]:
        near = [one for one in COMPUTE_CAPABILITIES if _digits(one) == _digits(item)]
        meant = f'; write "{near[0]}"' if near else ""
        yield key, f"{item[:40]!r} is not a GPU that engines can be built for (known: {known}){meant}"


def _digits(capability: str) -> str:
    return capability.lower().removeprefix("sm").lstrip("_").replace(".", "")


def _plugin(package: str, platforms: tuple[str, ...], versions: str = "", tag: str = "") -> Availability:
    return Availability(
        package=package,
        versions=versions,
        platforms=platforms,
        module="onnxruntime_ep_nv_tensorrt_rtx",
        # It states no requirement; plugins need the interface that this version of the runtime brought.
        runtime_versions=">=1.24",
        source=f"wheels of {package} 0.5.0{tag}",
    )


PROVIDER = ProviderKnowledge(
    name="tensorrt-rtx",
    runtime_name="NvTensorRTRTXExecutionProvider",
    title="NVIDIA TensorRT for RTX",
    package="onnxruntime-ep-nv-tensorrt-rtx-cu13",
    options=OptionTable(
        rules=(*_MEMORY, *_RUNNING, *_KEEPING),
        replaced={
            "device_id": "nothing: the plugin's device says which GPU it is",
            "nv_cuda_graph_enable": "`enable_cuda_graph`",
            "trt_fp16_enable": "`precision.method`, for example mixed-fp16: types are those of the model",
            "trt_int8_enable": '`precision.method = "static-tensorrt"`: types are those of the model',
            "trt_engine_cache_enable": "`compile = { here = true }` of the variant",
            "trt_engine_cache_path": "nothing: bundler ships the engine, or keeps it on the device",
        },
        check=_check,
    ),
    device_memory=DEVICE_MEMORY,
    # As for the classic one: symmetric int8 (measured with tensorrt-rtx 1.7.1), and types are those of the model.
    numerics=BUILDER_NUMERICS,
    graph=GraphRules(excluded_optimizers=REFUSED_OPTIMIZERS, ranges=_SHAPES, proofs=("engine", "context", "nodes")),
    presence=Presence(
        availability=(
            _plugin("onnxruntime-ep-nv-tensorrt-rtx-cu13", ("linux/x64", "windows/x64", "windows/arm64")),
            _plugin(
                "onnxruntime-ep-nv-tensorrt-rtx-cu13",
                ("linux/arm64",),
                versions=">=0.4",
                tag=" and 0.4.0 (none of 0.3.0), manylinux_2_35_aarch64",
            ),
            _plugin("onnxruntime-ep-nv-tensorrt-rtx-cu12", ("linux/x64", "windows/x64")),
        ),
        # The plugin carries TensorRT for RTX and CUDA's own runtime; its library is linked to these two of the driver.
        needs=(
            replace(
                DRIVER,
                libraries={"linux": ("libcuda.so.1", "libnvidia-ml.so.1"), "windows": ("nvml.dll",)},
                runtime_versions="",
            ),
            NeedRule(
                what="zlib",
                check="ldconfig -p | grep libz.so.1",
                libraries={"linux": ("libz.so.1",)},
                systems=("linux",),
                source="what the library of onnxruntime-ep-nv-tensorrt-rtx-cu13 0.5.0 is linked to",
            ),
        ),
    ),
    compiler=Compiler(
        stage="build_engine",
        environment="tensorrt-rtx",
        options=(
            HERE,
            text("compute_capabilities", f"GPUs that are built for, with commas: {', '.join(COMPUTE_CAPABILITIES)}."),
            flag("half", "Require half precision: a model without half precision fails."),
            EMBED,
        ),
        through_plugin=False,
        lists={"compute_capabilities": "devices"},
        ranges=_SHAPES,
        for_one_system=True,
        check=_check_compile,
    ),
    deferral=Deferral(kind="context", thing="TensorRT for RTX engine"),
)
