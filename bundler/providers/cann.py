"""Huawei CANN: Ascend NPUs.

Options as onnxruntime-cann 1.24.4 and its source name them. Compiling needs Huawei's toolkit on the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from bundler.providers.knowledge import Availability, NeedRule, Numerics, OptionTable, Presence, ProviderKnowledge
from bundler.providers.rules import DEBUGGING, choice, flag, is_set, text, whole

_MODES = ("high_precision", "high_performance", "high_precision_for_all", "high_performance_for_all")
_PRECISIONS = ("fp16", "origin", "cube_fp16in_fp32out", "mixed_float16", "mixed_bfloat16", "cube_hif8", "mixed_hif8")
_DYNAMIC = ("dynamic_batch_size", "dynamic_image_size", "dynamic_dims")

_OPTIONS = (
    choice(
        "arena_extend_strategy",
        ("kNextPowerOfTwo", "kSameAsRequested"),
        "How the NPU's memory arena grows.",
        default="kNextPowerOfTwo",
    ),
    whole("device_id", "Which NPU."),
    flag("dump_graphs", "Write the graphs that are compiled.", decided=DEBUGGING),
    flag("dump_om_model", "Write the compiled models.", default="1", decided=DEBUGGING),
    text("dynamic_batch_size", "Batch sizes to compile for: `1,2,4`."),
    text("dynamic_dims", "Sizes to compile for, one group each: `1,3;2,3`."),
    text("dynamic_image_size", "Heights and widths to compile for: `224,224;640,640`."),
    flag("enable_cann_graph", "Compile whole graphs; off, each operator runs alone and slower.", default="1"),
    flag("enable_cann_subgraph", "Compile the supported parts of a model that it does not support as a whole."),
    text("input_format", "Memory layout of the inputs: `NCHW`, `NHWC`, `ND`."),
    whole("npu_mem_limit", "Maximum size of the NPU's memory arena, in bytes.", default="all"),
    choice("op_select_impl_mode", _MODES, "Exact or fast kernels.", default="high_precision"),
    text("optypelist_for_implmode", "Operators that `op_select_impl_mode` is for; empty for all."),
    choice("precision_mode_v2", _PRECISIONS, "Which operators are computed in which precision.", default="fp16"),
)


def _check(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    whole_graph = is_set(options.get("enable_cann_graph", "1"))
    for key in (*_DYNAMIC, "enable_cann_subgraph"):
        if key in options and not whole_graph:
            yield key, "has no effect while enable_cann_graph is off"
    for key in [key for key in _DYNAMIC if key in options][1:]:
        yield key, f"says the same as another of {', '.join(_DYNAMIC)}; keep one of them"
    if "optypelist_for_implmode" in options and "op_select_impl_mode" not in options:
        yield "optypelist_for_implmode", "has no effect without op_select_impl_mode"


def _round(options: Mapping[str, str]) -> Literal["none", "half"]:
    """Half precision is what the NPU computes in unless it is asked to keep the model's types."""
    return "none" if options.get("precision_mode_v2") == "origin" else "half"


PROVIDER = ProviderKnowledge(
    name="cann",
    runtime_name="CANNExecutionProvider",
    title="Huawei CANN",
    package="onnxruntime-cann",
    options=OptionTable(
        rules=_OPTIONS,
        replaced={
            "do_copy_in_default_stream": "nothing: the provider removed it",
            "precision_mode": "`precision_mode_v2`, with fp16 for force_fp16 and origin for must_keep_origin_dtype",
            "gpu_mem_limit": "`npu_mem_limit`",
        },
        check=_check,
    ),
    validation_provider="cpu",
    numerics=Numerics(
        # Ascend computes in half precision anyway; models stored so are half the size.
        precisions=("mixed-fp16", "fp16"),
        tries=("mixed-fp16",),
        rounds=_round,
    ),
    presence=Presence(
        availability=(
            Availability(
                package="onnxruntime-cann",
                versions=">=1.13.1,<=1.24.4",
                platforms=("linux/x64", "linux/arm64"),
                source="package index: 1.13.1 and 1.21.0 to 1.24.4; option names are strings of its library, values "
                "are Huawei's (not verified on a device)",
            ),
        ),
        instead="onnxruntime-cann as runtime.package (1.24.4 is the newest), on Linux with Huawei's CANN toolkit",
        needs=(
            NeedRule(
                what="Huawei's driver and CANN toolkit",
                check="npu-smi info",
                libraries={"linux": ("libascendcl.so", "libacl_op_compiler.so", "libfmk_onnx_parser.so")},
                # Which version of the toolkit 1.24.4 wants is written nowhere; for 1.20 to 1.22 it was 8.2.
                source="linked libraries of the provider in onnxruntime-cann 1.24.4",
            ),
        ),
    ),
)
