"""Intel oneDNN: kernels for the CPU, in custom builds of ONNX Runtime."""

from __future__ import annotations

from bundler.providers.cpu import PROVIDER as CPU
from bundler.providers.knowledge import Numerics, OptionTable, Presence, ProviderKnowledge
from bundler.providers.rules import flag

PROVIDER = ProviderKnowledge(
    name="onednn",
    runtime_name="DnnlExecutionProvider",
    title="Intel oneDNN",
    package="",
    options=OptionTable(
        rules=(flag("use_arena", "Keep freed memory in an arena for the next run.", default="1"),),
        replaced={"enable_cpu_mem_arena": "`use_arena`", "num_threads": "nothing: OpenMP's own settings"},
    ),
    validation_provider="cpu",
    numerics=Numerics(
        # What it leaves runs on the CPU provider, which takes all of these. None was measured, so none is tried.
        precisions=CPU.numerics.precisions,
    ),
    presence=Presence(
        gone="No published package has it; the source of the runtime 1.31.1 still does (build with --use_dnnl)",
        instead="cpu, or openvino on Intel's processors",
    ),
)
