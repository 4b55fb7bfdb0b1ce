"""NVIDIA TensorRT, the classic one: engines for one kind of GPU, built on it.

The keys are strings of the provider's library in onnxruntime-gpu 1.31.1, the defaults of its source. A key that it does
not know ends the provider, and the runtime goes on without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from bundler.providers.cuda import CUDA_NEEDS, DEVICE_MEMORY, GPU_RUNTIME, for_each_system
from bundler.providers.knowledge import (
    Deferral,
    GraphRules,
    NeedRule,
    Numerics,
    OptionTable,
    Presence,
    ProviderKnowledge,
)
from bundler.providers.methods import QUANTIZED, wanted_by_provider
from bundler.providers.rules import (
    ADDRESS,
    BUILDING_PATH,
    DEBUGGING,
    LEGACY_CONTEXT,
    STREAM,
    flag,
    is_set,
    shape_ranges,
    text,
    whole,
)
from bundler.providers.shape_ranges import check_ranges

_CACHE = "the device's own folder for engines is chosen there, by `prewarm`"
_TABLE = "`precision.method` quantises the model itself, which needs no separate table of ranges"
_SHAPES = ("trt_profile_min_shapes", "trt_profile_opt_shapes", "trt_profile_max_shapes")

_BUILDING = (
    whole("device_id", "Which GPU, by CUDA's own numbers."),
    whole("trt_max_workspace_size", "Bytes that building and running may take for scratch; 0 is all of the GPU's."),
    whole("trt_builder_optimization_level", "How hard building looks for faster kernels.", default="3", most=5),
    whole("trt_max_partition_iterations", "Attempts to split the graph.", default="1000", least=1),
    whole(
        "trt_min_subgraph_size",
        "Minimum number of nodes of a part that is assigned to the provider.",
        default="1",
        least=1,
    ),
    whole("trt_auxiliary_streams", "Additional streams; -1 is TensorRT's choice.", default="-1", least=-1),
    text("trt_op_types_to_exclude", "Operator types for other providers, separated by commas."),
    text("trt_tactic_sources", "Libraries of kernels: `-CUDNN,+CUBLAS`."),
    text("trt_preview_features", "Features that are not final, with commas."),
    flag("trt_build_heuristics_enable", "Choose kernels by rule instead of timing."),
    flag("trt_sparsity_enable", "Use weights with two zeros in every four values."),
    flag("trt_force_sequential_engine_build", "Build one engine after the other on several GPUs."),
    flag("trt_engine_hw_compatible", "Build engines that also run on other GPUs from Ampere on, more slowly."),
    flag("trt_detailed_build_log", "Log each step of building, with its time."),
)

_NUMBERS = (
    flag("trt_fp16_enable", "Compute in half precision where that is faster."),
    flag("trt_bf16_enable", "Compute in bfloat16 where that is faster."),
    flag("trt_int8_enable", "Compute in int8; required for quantised models."),
    flag("trt_layer_norm_fp32_fallback", "Keep normalisations of layers in single precision under `trt_fp16_enable`."),
    text("trt_int8_calibration_table_name", "Table of ranges.", decided=_TABLE),
    flag("trt_int8_use_native_calibration_table", "The table is TensorRT's own.", decided=_TABLE),
)

_ACCELERATOR = (
    flag("trt_dla_enable", "Run supported parts on the deep learning accelerator of a Jetson."),
    whole("trt_dla_core", "Which of its cores."),
)

_RUNNING = (
    *shape_ranges(*_SHAPES),
    flag("trt_cuda_graph_enable", "Record the first run and replay it after; fixed shapes."),
    flag("trt_context_memory_sharing_enable", "Let the engines of a model share their scratch memory."),
    *STREAM,
    flag("trt_load_user_initializer", "Read weights from the program's memory.", decided=ADDRESS),
    text("trt_extra_plugin_lib_paths", "Libraries with custom operators.", decided=BUILDING_PATH),
    flag("trt_dump_subgraphs", "Write the graphs that were assigned to the provider.", decided=DEBUGGING),
)

_KEEPING = (
    flag("trt_engine_cache_enable", "Keep built engines in a folder.", decided=_CACHE),
    text("trt_engine_cache_path", "That folder.", decided=_CACHE),
    text("trt_engine_cache_prefix", "Start of the engines' names.", decided=_CACHE),
    flag("trt_timing_cache_enable", "Keep how long kernels took.", decided=_CACHE),
    text("trt_timing_cache_path", "Folder for them; default: the folder of the engines.", decided=_CACHE),
    flag("trt_force_timing_cache", "Use times of another GPU of the same kind.", decided=_CACHE),
    flag("trt_weight_stripped_engine_enable", "Keep engines without their weights.", decided=_CACHE),
    text("trt_onnx_model_folder_path", "Folder of the model whose weights complete an engine.", decided=_CACHE),
    flag("trt_engine_decryption_enable", "Decrypt engines that are opened.", decided=BUILDING_PATH),
    text("trt_engine_decryption_lib_path", "Library that does so.", decided=BUILDING_PATH),
    text("trt_onnx_bytestream", "The model in memory.", decided=ADDRESS),
    whole("trt_onnx_bytestream_size", "Its bytes.", decided=ADDRESS),
    text("trt_external_data_bytestream", "Its weights in memory.", decided=ADDRESS),
    whole("trt_external_data_bytestream_size", "Their bytes.", decided=ADDRESS),
    flag("trt_dump_ep_context_model", "Write a context model.", decided=LEGACY_CONTEXT),
    text("trt_ep_context_file_path", "Where it is written.", decided=LEGACY_CONTEXT),
    flag("trt_ep_context_embed_mode", "Put the engine into it.", decided=LEGACY_CONTEXT),
)


def _check(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from check_ranges(options, _SHAPES)
    if "trt_dla_core" in options and not is_set(options.get("trt_dla_enable", "0")):
        yield "trt_dla_core", "has no effect without `trt_dla_enable`"
    low = any(is_set(options.get(key, "0")) for key in ("trt_fp16_enable", "trt_int8_enable"))
    if is_set(options.get("trt_dla_enable", "0")) and not low:
        yield "trt_dla_enable", "takes nothing in single precision; set `trt_fp16_enable` or `trt_int8_enable`"
    if is_set(options.get("trt_layer_norm_fp32_fallback", "0")) and not is_set(options.get("trt_fp16_enable", "0")):
        yield "trt_layer_norm_fp32_fallback", "has no effect without `trt_fp16_enable`"


def _library(cuda: str, runtimes: str) -> tuple[NeedRule, ...]:
    """TensorRT is published once for each CUDA, with files of the same names: only the right one works."""
    rule = NeedRule(
        what="TensorRT",
        version=f"10 for CUDA {cuda}",
        check="ldconfig -p | grep libnvinfer.so.10",
        libraries={"linux": ("libnvinfer.so.10", "libnvonnxparser.so.10")},
        runtime_versions=runtimes,
        source="what the provider's library of onnxruntime-gpu 1.31.1 is linked to (beside libcudart.so.13); "
        "the runtime's documentation",
    )
    return for_each_system(rule, "nvinfer_10.dll", "nvonnxparser_10.dll")


_SYMMETRIC: Mapping[str, bool] = {
    "ActivationSymmetric": True,
    "WeightSymmetric": True,
    "QuantizeBias": False,
    "DedicatedQDQPair": True,
}
"""It takes symmetric pairs only, adds biases in floating point, and fuses a pair with one node that reads it."""

BUILDER_NUMERICS = Numerics(
    precisions=("static-tensorrt", "mixed-fp16", "fp16", "bf16"),
    tries=("mixed-fp16", "static-tensorrt"),
    # TF32 is on in both builders by default (1.7.1, measured), and the runtime has no option for it.
    rounds=lambda _options: "half",
    tf32=True,
)
"""Of both of TensorRT's builders."""

REFUSED_OPTIMIZERS = ("WeightBiasQuantization",)
"""They make biases int32, which the parser refuses (measured with tensorrt-rtx 1.7.1)."""

PROVIDER = ProviderKnowledge(
    name="tensorrt",
    runtime_name="TensorrtExecutionProvider",
    title="NVIDIA TensorRT",
    package="onnxruntime-gpu",
    options=OptionTable(
        rules=(*_BUILDING, *_NUMBERS, *_ACCELERATOR, *_RUNNING, *_KEEPING),
        replaced={
            "trt_engine_cache": "nothing: bundler keeps engines on the device, through `prewarm`",
            "trt_fp16": "`trt_fp16_enable`",
            "trt_int8": "`trt_int8_enable`",
            "trt_workspace_size": "`trt_max_workspace_size`",
            "max_workspace_size": "`trt_max_workspace_size`",
            "fp16": "`trt_fp16_enable`",
            "int8": "`trt_int8_enable`",
        },
        check=_check,
    ),
    device_memory=DEVICE_MEMORY,
    numerics=replace(
        BUILDER_NUMERICS,
        # Symmetric int8 without quantised bias, which its parser wants; other flavours it refuses. Half precision
        # as the model has it, chosen by what it loses, over `trt_fp16_enable`, which judges by speed alone. Not weights
        # of few bits alone: their operator is the runtime's own.
        methods=(
            wanted_by_provider(
                "static-tensorrt",
                "8-bit in the form that TensorRT supports",
                takes=QUANTIZED,
                activation_type="int8",
                weight_type="int8",
                per_channel=True,
                extra=_SYMMETRIC,
            ),
        ),
    ),
    graph=GraphRules(excluded_optimizers=REFUSED_OPTIMIZERS, ranges=_SHAPES),
    presence=Presence(
        availability=GPU_RUNTIME,
        needs=(*CUDA_NEEDS, *_library("13", ">=1.27"), *_library("12", ">=1.19,<1.27")),
    ),
    # An engine needs the GPU that it is for, so no other machine builds one.
    deferral=Deferral(
        kind="cache",
        thing="TensorRT engine",
        folder_option="trt_engine_cache_path",
        options={"trt_engine_cache_enable": "1", "trt_timing_cache_enable": "1", "trt_timing_cache_path": "{folder}"},
    ),
)
