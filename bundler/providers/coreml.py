"""Apple Core ML: the Neural Engine, the GPU and the CPU of Apple's devices.

Options as the libraries of onnxruntime 1.31.1 for macOS name them; the runtime raises for any other. The compiled model
depends on the device's chip and system, so only the device compiles it.

A cache folder does not detect a changed model: the runtime finds it by the model's metadata `COREML_CACHE_KEY`, or by
its path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from bundler.providers.knowledge import (
    Availability,
    Deferral,
    GraphRules,
    NeedRule,
    Numerics,
    OptionRule,
    OptionTable,
    PlacementChecker,
    Presence,
    ProviderKnowledge,
    SizeRule,
)
from bundler.providers.packages import IOS_RUNTIMES
from bundler.providers.rules import choice, flag, is_set

_FOLDER = "the loader gives it a separate folder, which `prewarm` fills"
_NAMED = "the options of the provider by name; the bit mask is of the C interface and of the Node.js binding"
_UNITS = ("ALL", "CPUOnly", "CPUAndGPU", "CPUAndNeuralEngine")

_OPTIONS = (
    flag("AllowLowPrecisionAccumulationOnGPU", "Sums on the GPU in half precision: faster, less exact."),
    flag("EnableOnSubgraphs", "Also take nodes in the bodies of If, Loop and Scan."),
    choice("MLComputeUnits", _UNITS, "Which units Core ML may use.", default="ALL"),
    OptionRule(
        key="ModelCacheDirectory",
        default="",
        meaning="Folder of compiled models, kept between starts.",
        decided=_FOLDER,
    ),
    choice(
        "ModelFormat",
        ("MLProgram", "NeuralNetwork"),
        "Format that the model is translated to: MLProgram keeps the model's types and has more operators "
        "(macOS 12, iOS 15 on).",
        default="NeuralNetwork",
    ),
    flag("ProfileComputePlan", "Log the unit and the cost of each operator; MLProgram only, for development."),
    flag("RequireStaticInputShapes", "Take nodes of fixed sizes only; others slow Core ML down."),
    choice(
        "SpecializationStrategy",
        ("Default", "FastPrediction"),
        "FastPrediction spends time and space while loading to be faster afterwards (macOS 15, iOS 18 on).",
        default="Default",
    ),
)


def _check(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    units = options.get("MLComputeUnits", "ALL")
    low = "AllowLowPrecisionAccumulationOnGPU"
    if is_set(options.get(low, "0")) and units in ("CPUOnly", "CPUAndNeuralEngine"):
        yield low, f"has no effect with MLComputeUnits {units}, which leaves the GPU out"
    plan = "ProfileComputePlan"
    if is_set(options.get(plan, "0")) and not _is_program(options):
        yield plan, "the runtime ignores it unless ModelFormat is MLProgram"


def _is_program(options: Mapping[str, str]) -> bool:
    return options.get("ModelFormat", "NeuralNetwork") == "MLProgram"


def _round(options: Mapping[str, str]) -> Literal["none", "half"]:
    """The older format computes in FP16 except on the CPU; the newer keeps the model's types."""
    if options.get("MLComputeUnits", "ALL") == "CPUOnly":
        return "none"
    low = is_set(options.get("AllowLowPrecisionAccumulationOnGPU", "0"))
    return "half" if low or not _is_program(options) else "none"


def _system(what: str, system: str, version: str, check: str, when: Mapping[str, str]) -> NeedRule:
    source = "ONNX Runtime documentation, CoreML Execution Provider: available options"
    return NeedRule(what=what, version=f"{version} or later", check=check, systems=(system,), when=when, source=source)


_PROGRAM, _FAST = {"ModelFormat": "MLProgram"}, {"SpecializationStrategy": "FastPrediction"}


def _choose_checker(options: Mapping[str, str]) -> PlacementChecker:
    name = "MLProgram" if _is_program(options) else "NeuralNetwork"
    return PlacementChecker(
        function="check_coreml_partitions",
        title=f"CoreML {name}",
        operators=f"coreml_supported_{name.lower()}_ops.md",
    )


PROVIDER = ProviderKnowledge(
    name="coreml",
    runtime_name="CoreMLExecutionProvider",
    title="Apple Core ML",
    package="onnxruntime",
    options=OptionTable(
        rules=_OPTIONS,
        replaced={
            "coreml_flags": _NAMED,
            "coreMlFlags": _NAMED,
            "flags": _NAMED,
            "COREML_FLAG_USE_CPU_ONLY": '`MLComputeUnits = "CPUOnly"`',
            "COREML_FLAG_USE_CPU_AND_GPU": '`MLComputeUnits = "CPUAndGPU"`',
            "COREML_FLAG_ONLY_ENABLE_DEVICE_WITH_ANE": '`MLComputeUnits = "CPUAndNeuralEngine"`',
            "COREML_FLAG_CREATE_MLPROGRAM": '`ModelFormat = "MLProgram"`',
            "COREML_FLAG_ONLY_ALLOW_STATIC_INPUT_SHAPES": "`RequireStaticInputShapes`",
            "COREML_FLAG_ENABLE_ON_SUBGRAPH": "`EnableOnSubgraphs`",
            "RequireStaticShapes": "`RequireStaticInputShapes`",
            "EnableSubgraphs": "`EnableOnSubgraphs`",
            "preferred_memory_format": "nothing: Core ML chooses the memory layout",
            "use_fp16": "`precision.method` of the profile, with `ModelFormat` MLProgram",
        },
        check=_check,
    ),
    validation_provider="cpu",
    numerics=Numerics(
        # The Neural Engine computes in FP16 only, also as MLProgram. Quantised nodes stay on the CPU, so int8 methods
        # would leave nothing for the chip.
        precisions=("mixed-fp16", "fp16", "fp16-weights"),
        tries=("mixed-fp16",),
        rounds=_round,
    ),
    presence=Presence(
        availability=(
            Availability(
                package="onnxruntime",
                platforms=("macos/arm64",),
                source="the options are strings of the library in the 1.31.1 wheel of macOS arm64",
            ),
            *IOS_RUNTIMES,
            Availability(
                package="onnxruntime-swift-package-manager",
                platforms=("ios/arm64", "macos/arm64"),
                source="Swift package (1.24.2), which takes the archive of onnxruntime-c",
            ),
        ),
        instead="cpu; webgpu-native is a plugin for Macs",
        needs=(
            _system("macOS", "macos", "12", "sw_vers -productVersion", _PROGRAM),
            _system("iOS", "ios", "15", "Settings, General, About", _PROGRAM),
            _system("macOS", "macos", "15", "sw_vers -productVersion", _FAST),
            _system("iOS", "ios", "18", "Settings, General, About", _FAST),
        ),
    ),
    deferral=Deferral(
        kind="cache", thing="Core ML model", folder_option="ModelCacheDirectory", model_key="COREML_CACHE_KEY"
    ),
    graph=GraphRules(
        free_sizes=(SizeRule(sizes="cpu", when={"RequireStaticInputShapes": "1"}),),
        checker=_choose_checker,
    ),
)
