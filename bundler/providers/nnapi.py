"""Android's Neural Networks API.

The runtime takes no options by name here, but a set of flags (`addNnapi(EnumSet<NNAPIFlags>)` in Java and Kotlin). The
keys are the names that the runtime's JavaScript interface gives these flags; a loader turns each that is on into its
flag, which `meaning` names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from bundler.providers.knowledge import (
    GraphRules,
    NeedRule,
    Numerics,
    OptionTable,
    PlacementChecker,
    Presence,
    ProviderKnowledge,
    SizeRule,
)
from bundler.providers.methods import STATIC_INT8
from bundler.providers.packages import ANDROID_RUNTIME
from bundler.providers.rules import flag, is_set

_OPTIONS = (
    flag("cpuDisabled", "Flag CPU_DISABLED: leave out Android's own CPU kernels, which are slow; Android 10 on."),
    flag("cpuOnly", "Flag CPU_ONLY: Android's reference kernels on the CPU, to validate results; Android 10 on."),
    flag("useFP16", "Flag USE_FP16: compute a single-precision model in half precision; faster, less exact."),
    flag("useNCHW", "Flag USE_NCHW: channels before pixels in memory; slower on most devices; Android 10 on."),
)


def _check(options: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if is_set(options.get("cpuDisabled", "0")) and is_set(options.get("cpuOnly", "0")):
        yield "cpuOnly", "the runtime refuses it together with cpuDisabled"


def _round(options: Mapping[str, str]) -> Literal["none", "half"]:
    return "half" if is_set(options.get("useFP16", "0")) else "none"


PROVIDER = ProviderKnowledge(
    name="nnapi",
    runtime_name="NnapiExecutionProvider",
    title="Android NNAPI",
    package="onnxruntime-android",
    options=OptionTable(
        rules=_OPTIONS,
        replaced={
            "use_fp16": "`useFP16`",
            "use_nchw": "`useNCHW`",
            "cpu_disabled": "`cpuDisabled`",
            "cpu_only": "`cpuOnly`",
            "NNAPI_FLAG_USE_FP16": "`useFP16`",
            "NNAPI_FLAG_USE_NCHW": "`useNCHW`",
            "NNAPI_FLAG_CPU_DISABLED": "`cpuDisabled`",
            "NNAPI_FLAG_CPU_ONLY": "`cpuOnly`",
            "execution_mode": "`session.execution_mode`",
            "nnapi_flags": "the flags by name",
            "partitioning_stop_ops": "nothing: bundler does not set `ep.nnapi.partitioning_stop_ops`",
        },
        check=_check,
    ),
    validation_provider="cpu",
    numerics=Numerics(
        # NNAPI has unsigned int8 activations and signed weights by channel; it refuses FP16 tensors.
        precisions=STATIC_INT8,
        tries=("static-int8-full", "static-int8"),
        rounds=_round,
    ),
    presence=Presence(
        availability=(ANDROID_RUNTIME,),
        gone="Android 15 deprecated NNAPI, and newer devices often run it on the CPU; onnxruntime-android still has it",
        instead="qnn on Snapdragon, and xnnpack or cpu elsewhere",
        needs=(
            NeedRule(
                what="Android",
                version="8.1 or later (API level 27)",
                check="adb shell getprop ro.build.version.sdk",
                source="ONNX Runtime documentation, NNAPI Execution Provider: requirements",
            ),
        ),
    ),
    graph=GraphRules(
        # A dynamic dimension keeps its nodes on the runtime's CPU kernels; the rest is still assigned to it.
        free_sizes=(SizeRule(sizes="cpu"),),
        checker=lambda _: PlacementChecker(function="check_nnapi_partitions", title="NNAPI"),
    ),
)
