"""Arm NN: Arm's CPUs and Mali GPUs, in runtimes up to 1.24."""

from __future__ import annotations

from bundler.providers.knowledge import OptionTable, Presence, ProviderKnowledge

PROVIDER = ProviderKnowledge(
    name="armnn",
    runtime_name="ArmNNExecutionProvider",
    title="Arm NN",
    package="",
    options=OptionTable(
        # None by name: its one setting was an argument of the C interface.
        rules=(),
        replaced={
            "use_arena": "`session.enable_cpu_mem_arena`",
            "enable_cpu_mem_arena": "`session.enable_cpu_mem_arena`",
        },
    ),
    validation_provider="cpu",
    presence=Presence(
        gone="Release 1.25 of the runtime removed it from its source; before, it needed a custom build of ONNX Runtime",
        instead="cpu, or xnnpack in the packages for phones",
    ),
)
