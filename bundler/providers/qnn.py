"""Qualcomm's QNN: the tensor processor (HTP) of Snapdragon chips, and their GPU.

Keys and values are those of onnxruntime-qnn 2.6.0 and 2.7.0, whose libraries contain each key as a string; defaults are
those of their source. The provider silently ignores unknown keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from bundler.providers.knowledge import (
    AppNeeds,
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
    Toolkit,
)
from bundler.providers.methods import QUANTIZED, TYPES, wanted_by_provider
from bundler.providers.qnn_chips import FIRST_BFLOAT, NEWEST_DMA, check_chips, find_chips, name_parts, split_list
from bundler.providers.rules import BUILDING_PATH, DEBUGGING, EMBED, HERE, choice, flag, is_set, text, whole

_CONTEXT = "compiling and opening are separate steps here; `compile` of the variant is how bundler compiles"
_BACKEND = "`backend_type` names the backend, and the device finds the library"

_TOO_NEW = "nothing: onnxruntime-qnn 2.7.0 brought it, and 2.6.0, which compiles and which phones have, ignores it"

_BACKENDS = ("htp", "gpu", "cpu")
"""The two others, `saver` and `ir`, record a graph for Qualcomm's tools and compute nothing."""

_PERFORMANCE = (
    "default",
    "burst",
    "sustained_high_performance",
    "high_performance",
    "balanced",
    "low_balanced",
    "high_power_saver",
    "power_saver",
    "low_power_saver",
    "extreme_power_saver",
)

_DEVICE = (
    choice("backend_type", _BACKENDS, "What computes: the tensor processor, the GPU, or a reference.", default="htp"),
    text("backend_path", "Library of the backend.", default="libQnnHtp.so", decided=_BACKEND),
    text(
        "soc_model", "Number of the chip that is compiled for; several with commas make one file for all.", default="0"
    ),
    text("htp_arch", "Generation of the chip's tensor processor, one for each of `soc_model`.", default="0"),
    whole("device_id", "Which of several tensor processors to use."),
    whole("vtcm_mb", "Megabytes of the tensor processor's own memory that the model may use; 0 is all."),
    flag("skip_qnn_version_check", "Accept a library of another version of Qualcomm's SDK than the provider's."),
)

_SPEED = (
    choice("htp_performance_mode", _PERFORMANCE, "Clock and power of the tensor processor.", default="default"),
    whole("rpc_control_latency", "Microseconds of latency that calls to the tensor processor ask for; 0 asks nothing."),
    choice("qnn_context_priority", ("low", "normal", "normal_high", "high"), "Whose turn is first.", default="normal"),
    whole("htp_graph_finalization_optimization_mode", "How hard the compiler looks for a better plan.", most=3),
    flag("offload_graph_io_quantization", "Leave quantising of inputs and outputs to the CPU.", default="1"),
)

_NUMBERS = (
    flag("enable_htp_fp16_precision", "Compute models in floating point in half precision (it does so either way)."),
    flag("enable_htp_fp16_clamp_overflow", "Hold numbers that overflow half precision at its greatest."),
    flag("htp_bf16_enable", f"Compute in bfloat16; chips from number {FIRST_BFLOAT} on."),
    flag("enable_block_quant_weight_optimization", "Keep 4-bit weights with one scale per block."),
    flag("enable_htp_monolithic_lstm", "Run an LSTM as one operator."),
)

_MEMORY = (
    flag("enable_htp_spill_fill_buffer", "Let the contexts of a process share the memory that layers overflow into."),
    flag("enable_vtcm_backup_buffer_sharing", "Let sessions share the copy of the tensor processor's own memory."),
    flag(
        "enable_htp_shared_memory_allocator", "Put inputs and outputs where the tensor processor reads them uncopied."
    ),
    flag("enable_dx12_shared_memory_allocator", "The same with Direct3D's memory, on Windows."),
    flag("htp_share_resource_optimization", "Share resources between contexts of a process."),
    flag("extended_udma", f"Use the wider addresses of the memory engine; architecture {NEWEST_DMA} and later."),
    flag("disable_file_mapped_weights", "Copy a context's weights instead of mapping its file, on Windows on Arm."),
)

_PREPARING = (
    flag("enable_htp_graph_splitting", "Split large graphs, so that several threads compile them."),
    flag("enable_htp_prepare_only", "Compile, and never run.", decided=_CONTEXT),
    text(
        "op_packages", "Custom operators: `Type:library:symbol[:target]`, separated by commas.", decided=BUILDING_PATH
    ),
)

_TRACES = (
    choice("profiling_level", ("off", "basic", "detailed", "optrace"), "How much is timed.", default="off"),
    text("profiling_file_path", "File on the device for the timings.", decided=DEBUGGING),
    flag("enable_framework_op_trace", "Record which operator became which.", decided=DEBUGGING),
    flag("dump_json_qnn_graph", "Write the graph as JSON.", decided=DEBUGGING),
    text("json_qnn_graph_dir", "Folder for it.", decided=DEBUGGING),
    flag("dump_qnn_ir_dlc", "Write the graph for Qualcomm's tools; excludes a context.", decided=DEBUGGING),
    text("dump_qnn_ir_dlc_dir", "Folder for it.", decided=DEBUGGING),
    flag("dump_qnn_ep_input_graph", "Write the graph that was handed over.", decided=DEBUGGING),
    text("dump_qnn_ep_input_graph_dir", "Folder for it.", decided=DEBUGGING),
    text("qnn_saver_path", "Library that records calls instead of computing.", decided=DEBUGGING),
    text("qnn_ir_backend_path", "Library that writes the graph.", default="libQnnIr.so", decided=DEBUGGING),
    flag("skip_backend_op_validation", "Take nodes unchecked when a graph is written.", decided=DEBUGGING),
)

_REPLACED = {
    "profiling": "`profiling_level`",
    "qnn_context_cache_enable": "`compile = { here = true }` of the variant, which writes the context before shipping",
    "qnn_context_cache_path": "nothing: bundler writes the context and the bundle knows where it lies",
    "qnn_context_embed_mode": "`compile = { embed = true }` of the variant",
    "performance_mode": "`htp_performance_mode`",
    "enable_fp16": "`enable_htp_fp16_precision`",
    "soc_id": "`soc_model`",
    "enable_htp_prepare_and_load": "nothing: bundler compiles and opens in separate steps",
    "htp_reused_io_limit_mb": _TOO_NEW,
    "htp_graph_splitting_num_prepare_threads": _TOO_NEW,
}

_PARTLY_HTP = ("enable_htp_", "htp_", "vtcm_", "enable_vtcm_", "extended_udma", "soc_model")


def _check(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    backend = options.get("backend_type", "htp")
    if backend != "htp":
        for key in sorted(key for key in options if key.startswith(_PARTLY_HTP)):
            yield key, f'is an option of the tensor processor, and `backend_type` is "{backend}"; remove it'
        return
    yield from check_chips(options)
    yield from _check_precision(options)
    yield from _check_memory(options)


def _check_precision(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    chips = find_chips(options.get("soc_model", ""))
    without = [chip.title for chip in chips if not chip.half]
    if is_set(options.get("enable_htp_fp16_precision", "0")) and (without or set(_architectures(options)) == {"68"}):
        names = ", ".join(without) or "architecture 68"
        yield "enable_htp_fp16_precision", f"{names} cannot compute in half precision; quantise to int8"
    if is_set(options.get("htp_bf16_enable", "0")):
        old = [chip.title for chip in chips if chip.number < FIRST_BFLOAT or chip.architecture < NEWEST_DMA]
        if old or not chips:
            names = ", ".join(old) or "a chip that is not named"
            yield "htp_bf16_enable", f"{names} cannot compute in bfloat16; chips from number {FIRST_BFLOAT} on can"
        if is_set(options.get("enable_htp_fp16_precision", "0")):
            yield "htp_bf16_enable", "incompatible with `enable_htp_fp16_precision`; choose one"


def _check_memory(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    architectures = [int(item) for item in _architectures(options) if item.isdecimal() and len(item) < 6]  # noqa: PLR2004
    if is_set(options.get("extended_udma", "0")) and architectures and min(architectures) < NEWEST_DMA:
        yield (
            "extended_udma",
            f"architecture {min(architectures)} does not have it; {NEWEST_DMA} is the first that does",
        )


def _architectures(options: Mapping[str, str]) -> list[str]:
    return split_list(options["htp_arch"]) if "htp_arch" in options else []


def _rounds(options: Mapping[str, str]) -> Literal["none", "half"]:
    """The tensor processor always computes in FP16 (bit-identical, measured), and the GPU chooses its precision."""
    return "none" if options.get("backend_type") == "cpu" else "half"


def _wants_integers(options: Mapping[str, str]) -> str:
    """Chips whose tensor processor has no floating point: the compiler accepts some such graphs and the emulator
    runs them, but the chip does not.
    """
    if options.get("backend_type", "htp") != "htp":
        return ""
    without = [chip.title for chip in find_chips(options.get("soc_model", "")) if not chip.half]
    return f"{', '.join(without)}: its NPU computes with integers alone" if without else ""


def _choose_validation_options(options: Mapping[str, str]) -> Mapping[str, str] | None:
    """For several chips in one file, which the emulator cannot run: the first of them."""
    if len(split_list(options.get("soc_model", ""))) == 1:
        return None
    return {key: split_list(value)[0] if key in ("soc_model", "htp_arch") else value for key, value in options.items()}


QAIRT = Toolkit(
    name="QAIRT",
    compiler=("onnxruntime-qnn", "2.6.0"),
    releases={
        "qnn-runtime": None,
        "onnxruntime-qnn": {
            "2.3.0": "2.47.0",
            "2.4.0": "2.48.40",
            "2.5.0": "2.49.40",
            "2.6.0": "2.50.40",
            "2.7.0": "2.51.0",
        },
    },
    source="`build_and_package_info.py` of each wheel of onnxruntime-qnn; qnn-runtime bears its kit's version. "
    "Contexts of 2.4.0 to 2.7.0, tried with the libraries of each (x86-64): all opened with the same or newer ones, "
    "none with older ones (`Using newer context binary on old SDK`). What is compared is the version of the tensor "
    "processor's interface, 5.48 for 2.48 to 5.51 for 2.51, without its last number: 2.50.0 should open what 2.50.40 "
    "wrote.",
)

_RULES: Mapping[str, str] = {"rules": "qnn", "activation_type": "uint8", "weight_type": "uint8"}
"""As the runtime's own QNN configuration and preprocessing, with the types that it supports."""

PROVIDER = ProviderKnowledge(
    name="qnn",
    runtime_name="QNNExecutionProvider",
    title="Qualcomm QNN",
    package="onnxruntime-qnn",
    options=OptionTable(
        rules=(*_DEVICE, *_SPEED, *_NUMBERS, *_MEMORY, *_PREPARING, *_TRACES),
        replaced=_REPLACED,
        check=_check,
    ),
    numerics=Numerics(
        lacks_doubles=True,
        # int8 in QNN's form: others leave operators between the quantised ones, and each of those splits the graph.
        # FP16 only halves the file, because floating point is computed in FP16 anyway. Low-bit weights in the
        # runtime's own operator stay on the CPU (measured).
        methods=(
            wanted_by_provider(
                "static-qnn", "8-bit in the form that Qualcomm's NPU supports", takes=TYPES | QUANTIZED, **_RULES
            ),
            wanted_by_provider(
                "static-qnn-a16w8",
                "8-bit weights, 16-bit activations for Qualcomm's NPU",
                takes=TYPES | QUANTIZED,
                **{**_RULES, "activation_type": "uint16"},
            ),
        ),
        precisions=("static-qnn", "static-qnn-a16w8", "fp16"),
        tries=("static-qnn", "static-qnn-a16w8"),
        rounds=_rounds,
        wants_integers=_wants_integers,
    ),
    presence=Presence(
        # Microsoft has a package of the first name, too, which is a whole runtime.
        maven_groups={"onnxruntime-android-qnn": "com.qualcomm.qti", "qnn-runtime": "com.qualcomm.qti"},
        # The tensor processor's own libraries ("skel") are loaded from files, and are code of its architecture
        # (Qualcomm's documentation of the provider for Android).
        app=AppNeeds(system_libraries=("libcdsprpc.so",), foreign=("**/libQnn*Skel.so",), extracted=True),
        availability=(
            Availability(
                package="onnxruntime-qnn",
                versions=">=2",
                platforms=("linux/arm64", "windows/arm64", "linux/x64", "windows/x64"),
                module="onnxruntime_qnn",
                runtime_versions=">=1.24.2",
                source="wheels of onnxruntime-qnn 2.7.0 and what they require; those for x64 compile, and emulate",
            ),
            Availability(
                package="onnxruntime-qnn",
                versions="<2",
                platforms=("windows/arm64", "windows/x64"),
                source="wheels of onnxruntime-qnn 1.24.4, a whole runtime",
            ),
            Availability(
                package="onnxruntime-android-qnn",
                versions=">=2",
                platforms=("android/arm64",),
                # Android has no Python: the name stands for the same plugin, which compiles on the building machine.
                module="onnxruntime_qnn",
                runtime_versions=">=1.24.2",
                source="Qualcomm's archive onnxruntime-android-qnn 2.6.0 (validated with onnxruntime-android 1.27.0)",
            ),
            Availability(
                package="onnxruntime-android-qnn",
                versions="<2",
                platforms=("android/arm64",),
                source="Microsoft's archive onnxruntime-android-qnn 1.29.0, a whole runtime",
            ),
        ),
        needs=(
            NeedRule(
                what="Qualcomm's FastRPC library and the firmware of the NPU",
                check="ldconfig -p | grep libcdsprpc.so",
                libraries={"linux": ("libcdsprpc.so",)},
                systems=("linux",),
                when={"backend_type": "htp"},
                source="its name in the libraries of the wheel of onnxruntime-qnn 2.7.0 for Linux aarch64",
            ),
            NeedRule(
                what="the phone maker's libcdsprpc.so, which the application's manifest names in <uses-native-library>",
                check="adb shell ls /vendor/lib64/libcdsprpc.so",
                systems=("android",),
                when={"backend_type": "htp"},
                source="Qualcomm's documentation of the provider for Android",
            ),
            NeedRule(
                # Its folder is none that the linker searches by itself, so that a loader cannot look for the library.
                what="Qualcomm's NPU driver, with libcdsprpc.dll",
                check="Device Manager lists the NPU under Neural processors",
                systems=("windows",),
                when={"backend_type": "htp"},
                source="Qualcomm's documentation of the provider for Windows; what the NPU's libraries in the wheel of "
                "onnxruntime-qnn 2.7.0 import",
            ),
            NeedRule(
                what="libatomic of GCC",
                check="ldconfig -p | grep libatomic.so.1",
                libraries={"linux": ("libatomic.so.1",)},
                systems=("linux",),
                source="what libQnnSystem.so in the wheel of onnxruntime-qnn 2.7.0 for Linux aarch64 is linked to",
            ),
            NeedRule(
                what="Qualcomm's driver of the GPU, with OpenCL",
                when={"backend_type": "gpu"},
                source="the names of OpenCL's libraries in libQnnGpu.so of the wheel of onnxruntime-qnn 2.7.0",
            ),
        ),
    ),
    compiler=Compiler(
        stage="compile_context",
        environment="qnn",
        options=(HERE, EMBED),
        executes=True,
        validation_options=_choose_validation_options,
        name_devices=name_parts,
        toolkit=QAIRT,
        wide_casts=True,  # measured: Cast gives 1 for each byte but zero (onnxruntime-qnn 2.6.0)
        # ONNX Runtime's documentation, EP Context Design, "EPContext with Weight Sharing"; its own tests of QNN set it
        # for both sessions when they run such models.
        shared_config={"ep.share_ep_contexts": "1"},
    ),
    deferral=Deferral(kind="context", thing="QNN context"),
    graph=GraphRules(
        # Measured: it silently assigns no node of a graph with a dynamic dimension to the NPU.
        free_sizes=(SizeRule(sizes="fixed"),),
        proofs=("context", "nodes", "compatibility"),
    ),
)
