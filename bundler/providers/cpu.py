"""The CPU provider: in every flavour of the runtime, and the last of every chain."""

from __future__ import annotations

from dataclasses import replace

from bundler.providers.knowledge import GraphRules, NeedRule, Numerics, OptionTable, Presence, ProviderKnowledge
from bundler.providers.methods import LOW_BIT_WEIGHTS
from bundler.providers.playbook import MOVED_TO_SESSION

_VISUAL_CPP = NeedRule(
    what="Microsoft's Visual C++ 2015-2022 Redistributable",
    check="where MSVCP140.dll MSVCP140_1.dll",
    libraries={"windows": ("MSVCP140.dll", "MSVCP140_1.dll")},
    systems=("windows",),
    runtime_versions="<1.24.4",
    source="ONNX Runtime documentation, Install ONNX Runtime, Requirements: the Visual C++ runtime on Windows",
)
"""Python brings VCRUNTIME140.dll and VCRUNTIME140_1.dll, and neither it nor the runtime's wheels bring these."""

PROVIDER = ProviderKnowledge(
    name="cpu",
    runtime_name="CPUExecutionProvider",
    title="CPU",
    graph=GraphRules(takes_fusions=True),
    package="onnxruntime",
    options=OptionTable(
        # None: the runtime takes any key here, ignores it and reports `{}` (measured with 1.31.1). All that tunes the
        # CPU is in the session options.
        rules=(),
        replaced=MOVED_TO_SESSION,
    ),
    presence=Presence(
        needs=(
            _VISUAL_CPP,
            replace(
                _VISUAL_CPP,
                version="14.44 or later",
                libraries={"windows": ("MSVCP140.dll", "MSVCP140_1.dll", "MSVCP140_ATOMIC_WAIT.dll")},
                runtime_versions=">=1.24.4",
                source="what libraries of onnxruntime-directml 1.24.4, onnxruntime 1.31.1 and onnxruntime-gpu 1.31.1 "
                "import (wheels for win_amd64 and win_arm64), and the version of the linker in them; Microsoft, C++ "
                "binary compatibility between Visual Studio versions: the redistributable must be at least as new as "
                "the tools",
            ),
        ),
    ),
    numerics=Numerics(
        # bf16 is left out: the CPU has no kernels for it (onnxruntime 1.31.1).
        precisions=(
            *("static-int8", "dynamic-int8", "static-int8-mixed", "static-int8-percentile", "static-int8-full"),
            *("static-a16w8", "static-qnn", "static-qnn-a16w8", "static-tensorrt", "nncf-int8"),
            *LOW_BIT_WEIGHTS,
            *("mixed-fp16", "fp16", "fp16-weights", "bf16-weights"),
        ),
        tries=(
            "dynamic-int8",
            "static-int8",
            "static-int8-percentile",
            "static-int8-full",
            "static-int8-mixed",
            "weights-8bit",
            "weights-4bit",
        ),
    ),
)
