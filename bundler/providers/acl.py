"""Arm Compute Library: kernels for Arm's CPUs, in custom builds of ONNX Runtime."""

from __future__ import annotations

from bundler.providers.cpu import PROVIDER as CPU
from bundler.providers.knowledge import Numerics, OptionTable, Presence, ProviderKnowledge
from bundler.providers.rules import flag

PROVIDER = ProviderKnowledge(
    name="acl",
    runtime_name="ACLExecutionProvider",
    title="Arm Compute Library",
    package="",
    options=OptionTable(
        rules=(flag("enable_fast_math", "Products in bfloat16 where the CPU has them: faster, less exact."),),
        replaced={
            "use_arena": "`session.enable_cpu_mem_arena`",
            "enable_cpu_mem_arena": "`session.enable_cpu_mem_arena`",
        },
    ),
    validation_provider="cpu",
    numerics=Numerics(
        # What it leaves runs on the CPU provider, which takes all of these. None was measured, so none is tried.
        precisions=CPU.numerics.precisions,
        rounds=lambda options: "half" if options.get("enable_fast_math", "0").lower() in ("1", "true") else "none",
    ),
    presence=Presence(
        gone="No published package has it; the source of the runtime 1.31.1 still does (build with --use_acl)",
        instead='cpu, with `session_config."mlas.enable_gemm_fastmath_arm64_bfloat16"` for products in bfloat16',
    ),
)
