"""Intel's OpenVINO: Intel's CPUs, GPUs and NPUs.

The table is that of the plugin onnxruntime-ep-openvino 1.8.1, measured with onnxruntime 1.31.1: most options of the
older whole runtime onnxruntime-openvino are ignored by it with a warning, and its `load_config` replaces them. It
silently accepts unknown keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from bundler.providers.knowledge import (
    Availability,
    Compiler,
    Deferral,
    GraphRules,
    NeedRule,
    Numerics,
    OptionTable,
    Presence,
    ProviderKnowledge,
    SizeRule,
)
from bundler.providers.methods import EXCLUSIONS, LOW_BIT_WEIGHTS, STATIC_INT8, Method, same
from bundler.providers.openvino_config import KEY, check_config, is_exact
from bundler.providers.rules import ADDRESS, DEBUGGING, EMBED, HERE, flag, text

_DEVICE = re.compile(r"CPU|NPU|GPU(\.[0-9]{1,2})?")
_SHAPE = re.compile(r"[^\[\],\s]+\[[0-9., ]+\](,[^\[\],\s]+\[[0-9., ]+\])*")

_OPTIONS = (
    text("device_type", "Device that computes: CPU, GPU, GPU.1, NPU.", default="CPU"),
    text(KEY, 'Properties of devices as JSON: `{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}`.'),
    text("reshape_input", "Fixed shapes of inputs: `name[1,3,224,224]`, with commas between several."),
    flag("enable_causallm", "Keep the cache of a language model inside the model.", default="false"),
    flag("dump_subgraphs", "Write the graphs that were assigned to the provider.", default="false", decided=DEBUGGING),
    text("context", "OpenCL context of the program, of the whole runtime only.", decided=ADDRESS),
)


def _property(name: str, device: str = "CPU", value: str = "…") -> str:
    return f'`load_config`, for example `{{"{device}": {{"{name}": "{value}"}}}}`'


_REPLACED = {
    "cache_dir": "nothing: the bundle itself keeps models compiled on the device, through `prewarm`",
    "precision": _property("INFERENCE_PRECISION_HINT", value="f32"),
    "num_of_threads": _property("INFERENCE_NUM_THREADS", value="4"),
    "intra_op_num_threads": _property("INFERENCE_NUM_THREADS", value="4"),
    "num_streams": _property("NUM_STREAMS", value="1"),
    "model_priority": _property("MODEL_PRIORITY", value="HIGH"),
    "enable_opencl_throttling": _property("PLUGIN_THROTTLE", "GPU", "1"),
    "enable_qdq_optimizer": _property("NPU_QDQ_OPTIMIZATION", "NPU", "YES"),
    "device_id": "`device_type`",
    "device_luid": "`device_type`",
    "layout": "nothing: the plugin no longer reads it",
    "enable_dynamic_shapes": "nothing: CPU and GPU take dynamic shapes; `dimensions` of the profile fixes them",
    "disable_dynamic_shapes": "`dimensions` of the profile, which fixes them",
    "export_ep_ctx_blob": "`compile = { here = true }` of the variant",
    "use_compiled_network": "`compile = { here = true }` of the variant",
    "blob_dump_path": "nothing: the bundle knows the place of the compiled model",
    "enable_vpu_fast_compile": "nothing: those devices were removed",
    "enable_npu_fast_compile": "nothing: the NPU's compiler chooses",
}


def _check(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    device = options.get("device_type", "CPU")
    if not _DEVICE.fullmatch(device):
        upper = device.upper()
        meant = f'; write "{upper}"' if _DEVICE.fullmatch(upper) else ""
        yield "device_type", f"{device[:40]!r} is not a device of the plugin (CPU, GPU, GPU.1, NPU){meant}"
    if KEY in options:
        for problem in check_config(options[KEY], device):
            yield KEY, problem
    shape = options.get("reshape_input")
    if shape is not None and not _SHAPE.fullmatch(shape):
        yield "reshape_input", f"expected `name[1,3,224,224]`, got {shape[:60]!r}"


def _rounds(options: Mapping[str, str]) -> Literal["none", "half", "bfloat16"]:
    """In bfloat16 on CPUs that multiply in it (2e-3, measured) and in half precision on GPUs and NPUs, unless asked not
    to; which CPU it will be is not known here, so the coarser holds.
    """
    device = options.get("device_type", "CPU")
    if is_exact(options.get(KEY, ""), device):
        return "none"
    return "bfloat16" if device == "CPU" else "half"


_NEEDS = (
    NeedRule(
        what="Intel's driver of the GPU, with OpenCL",
        check="clinfo -l",
        libraries={"linux": ("libOpenCL.so.1",)},
        systems=("linux",),
        when={"device_type": "GPU*"},
        source="what the GPU's library in the wheel of onnxruntime-ep-openvino 1.8.1 is linked to",
    ),
    NeedRule(
        what="Intel's driver of the GPU",
        check="Device Manager lists the GPU under Display adapters",
        libraries={"windows": ("OpenCL.dll",)},
        systems=("windows",),
        when={"device_type": "GPU*"},
        source="OpenVINO documentation, Configurations for Intel GPU; what the GPU's library in the wheel of "
        "onnxruntime-ep-openvino 1.8.1 imports",
    ),
    NeedRule(
        what="Intel's driver of the NPU",
        check="ls /dev/accel/accel0",
        systems=("linux",),
        when={"device_type": "NPU"},
        source="OpenVINO documentation, NPU Device: the plugin needs the driver to compile and to run",
    ),
    NeedRule(
        what="Intel's driver of the NPU",
        check="Device Manager lists Intel AI Boost under Neural processors",
        libraries={"windows": ("ze_loader.dll",)},
        systems=("windows",),
        when={"device_type": "NPU"},
        source="OpenVINO documentation, NPU Device: the plugin needs the driver to compile and to run; what the NPU's "
        "libraries in the wheel of onnxruntime-ep-openvino 1.8.1 import",
    ),
)

PROVIDER = ProviderKnowledge(
    name="openvino",
    runtime_name="OpenVINOExecutionProvider",
    title="Intel OpenVINO",
    package="onnxruntime-ep-openvino",
    options=OptionTable(rules=_OPTIONS, replaced=_REPLACED, check=_check),
    numerics=Numerics(
        # NNCF is its own quantiser; pairs of quantise and dequantise nodes, and weights of few bits, are read as well
        # (all measured, by nodes assigned). Outputs of quantised models must be checked by a run of OpenVINO itself:
        # version 2026.4.1 was far off, without an error, on two matrix products in a row, where every other runtime
        # agreed. Not 16-bit activations, which were off as well.
        methods=(
            Method(
                name="nncf-int8",
                title="8-bit weights and activations by OpenVINO's NNCF",
                stage="quantize_nncf",
                options={"preset": "mixed"},
                takes=EXCLUSIONS | same("preset"),
                loss="eight-bit",
                needs_calibration=True,
                environment="nncf",
            ),
        ),
        precisions=(
            "nncf-int8",
            *STATIC_INT8,
            *("mixed-fp16", "fp16", "fp16-weights", "dynamic-int8"),
            *LOW_BIT_WEIGHTS,
        ),
        tries=("nncf-int8", "static-int8", "static-int8-mixed", "mixed-fp16", "weights-4bit"),
        rounds=_rounds,
    ),
    presence=Presence(
        availability=(
            Availability(
                package="onnxruntime-ep-openvino",
                platforms=("linux/x64", "windows/x64"),
                module="onnxruntime_ep_openvino",
                # It states no requirement; plugins need the interface that this version of the runtime brought.
                runtime_versions=">=1.24",
                source="wheels of onnxruntime-ep-openvino 1.8.1, run with onnxruntime 1.31.1",
            ),
            Availability(
                package="onnxruntime-openvino",
                versions="<=1.24.1",
                platforms=("linux/x64", "windows/x64"),
                source="wheels of onnxruntime-openvino 1.24.1, the last",
            ),
        ),
        # One plugin library lists every device of Intel's, and its own word for them is this.
        select={"ov_device": "CPU"},
        select_by={"device_type": "ov_device"},
        needs=_NEEDS,
    ),
    # What is compiled fits the instruction set of the CPU that compiled it, so the device compiles for itself.
    compiler=Compiler(
        stage="compile_context", environment="openvino", options=(HERE, EMBED), by_default=False, executes=True
    ),
    deferral=Deferral(kind="context", thing="OpenVINO blob"),
    graph=GraphRules(
        # The NPU's compiler wants every size; `reshape_input` gives them to it.
        free_sizes=(SizeRule(sizes="fixed", when={"device_type": "NPU", "reshape_input": ""}),),
        proofs=("context", "nodes", "compatibility"),
    ),
)
