"""The CPU provider: in every flavour of the runtime, and the last of every chain."""

from __future__ import annotations

from bundler.providers.knowledge import GraphRules, Numerics, OptionTable, ProviderKnowledge
from bundler.providers.methods import LOW_BIT_WEIGHTS
from bundler.providers.playbook import MOVED_TO_SESSION

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
