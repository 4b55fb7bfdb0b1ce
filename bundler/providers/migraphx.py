"""AMD MIGraphX: AMD's GPUs under Linux, with ROCm installed.

Options as the library of onnxruntime-migraphx 1.27.1 names them; it throws at any other. Compiling needs the GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from bundler.providers.knowledge import (
    Availability,
    Deferral,
    NeedRule,
    Numerics,
    OptionTable,
    Presence,
    ProviderKnowledge,
)
from bundler.providers.rules import ADDRESS, choice, flag, is_set, text, whole

_FOLDER = "the loader gives it a separate folder, which `prewarm` fills"
_CACHED = "`migraphx_model_cache_dir`, which the loader sets"
_HALVES = ("migraphx_fp16_enable", "migraphx_bf16_enable", "migraphx_fp8_enable")
_INT8, _TABLE = "migraphx_int8_enable", "migraphx_int8_calibration_table_name"

_OPTIONS = (
    whole("device_id", "Which GPU."),
    choice(
        "migraphx_arena_extend_strategy",
        ("kNextPowerOfTwo", "kSameAsRequested"),
        "How the GPU's memory arena grows.",
        default="kNextPowerOfTwo",
    ),
    flag("migraphx_bf16_enable", "Compute in bfloat16."),
    flag("migraphx_exhaustive_tune", "Try all kernels while compiling: much slower to prepare, perhaps faster to run."),
    text("migraphx_external_alloc", "Allocator of the application.", default="0", decided=ADDRESS),
    text("migraphx_external_empty_cache", "Cache of the application's allocator.", default="0", decided=ADDRESS),
    text("migraphx_external_free", "Allocator of the application.", default="0", decided=ADDRESS),
    flag("migraphx_fp16_enable", "Compute in half precision."),
    flag("migraphx_fp8_enable", "Compute in 8-bit floating point, on GPUs that have it."),
    text(_TABLE, "File of calibration ranges on the device."),
    flag(_INT8, "Quantise to int8 while compiling, with ranges from a calibration table."),
    flag("migraphx_int8_use_native_calibration_table", "The table is in NVIDIA's format instead of JSON."),
    whole("migraphx_mem_limit", "Maximum size of the GPU's memory arena, in bytes.", default="all"),
    text("migraphx_model_cache_dir", "Folder of compiled models, kept between starts.", decided=_FOLDER),
)


def _check(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    halves = [key for key in _HALVES if is_set(options.get(key, "0"))]
    for key in halves[1:]:
        yield key, f"cannot be used with {halves[0]}; remove one of the two"
    if is_set(options.get(_INT8, "0")) and not options.get(_TABLE):
        yield _INT8, f"needs {_TABLE}; or take a precision method, which puts the ranges into the model"
    for key in (_TABLE, "migraphx_int8_use_native_calibration_table"):
        if key in options and not is_set(options.get(_INT8, "0")):
            yield key, f"has no effect without {_INT8}"


def _round(options: Mapping[str, str]) -> Literal["none", "half"]:
    return "half" if any(is_set(options.get(key, "0")) for key in (*_HALVES, _INT8)) else "none"


PROVIDER = ProviderKnowledge(
    name="migraphx",
    runtime_name="MIGraphXExecutionProvider",
    title="AMD MIGraphX",
    package="onnxruntime-migraphx",
    options=OptionTable(
        rules=_OPTIONS,
        replaced={
            "migraphx_save_compiled_model": _CACHED,
            "migraphx_save_compiled_path": _CACHED,
            "migraphx_save_model_path": _CACHED,
            "migraphx_load_compiled_model": _CACHED,
            "migraphx_load_compiled_path": _CACHED,
            "migraphx_load_model_path": _CACHED,
            "migraphx_use_native_calibration_table": "`migraphx_int8_use_native_calibration_table`",
            "migraphx_max_dynamic_batch": "`dimensions` of the profile; 1.27.1 has no such option",
            "hip_mem_limit": "`migraphx_mem_limit`",
            "gpu_mem_limit": "`migraphx_mem_limit`",
            "use_fp16": "`migraphx_fp16_enable`, or `precision.method` of the profile",
        },
        check=_check,
    ),
    validation_provider="cpu",
    numerics=Numerics(
        # Half precision is what AMD's GPUs are fast in. Not measured on a device.
        precisions=("mixed-fp16", "fp16", "bf16", "static-tensorrt"),
        tries=("mixed-fp16",),
        rounds=_round,
    ),
    presence=Presence(
        availability=(
            Availability(
                package="onnxruntime-migraphx",
                versions=">=1.23,<=1.27.1",
                platforms=("linux/x64",),
                source="package index: 1.23.0 to 1.27.1, wheels of manylinux_2_34 x86_64 (1.23.0: 2_35)",
            ),
        ),
        instead="onnxruntime-migraphx as runtime.package, on Linux x64 with ROCm; on Windows webgpu-native",
        needs=(
            NeedRule(
                what="AMD's driver, and ROCm with MIGraphX",
                check="rocminfo",
                libraries={"linux": ("libamdhip64.so.7", "libmigraphx_c.so.3")},
                source="ONNX Runtime documentation, MIGraphX Execution Provider; what the provider's library of "
                "onnxruntime-migraphx 1.27.0 is linked to",
            ),
        ),
    ),
    deferral=Deferral(kind="cache", thing="MIGraphX program", folder_option="migraphx_model_cache_dir"),
)
