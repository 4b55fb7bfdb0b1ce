"""AMD ROCm: AMD's GPUs, in runtimes up to 1.22."""

from __future__ import annotations

from bundler.providers.knowledge import Availability, NeedRule, Numerics, OptionTable, Presence, ProviderKnowledge
from bundler.providers.rules import ADDRESS, choice, flag, text, whole

PROVIDER = ProviderKnowledge(
    name="rocm",
    runtime_name="ROCMExecutionProvider",
    title="AMD ROCm",
    package="onnxruntime-rocm",
    options=OptionTable(
        rules=(
            choice(
                "arena_extend_strategy",
                ("kNextPowerOfTwo", "kSameAsRequested"),
                "How the GPU's memory arena grows.",
                default="kNextPowerOfTwo",
            ),
            whole("device_id", "Which GPU."),
            flag("do_copy_in_default_stream", "Copy in the stream that computes.", default="1"),
            text("gpu_external_alloc", "Allocator of the application.", default="0", decided=ADDRESS),
            text("gpu_external_empty_cache", "Cache of the application's allocator.", default="0", decided=ADDRESS),
            text("gpu_external_free", "Allocator of the application.", default="0", decided=ADDRESS),
            whole("gpu_mem_limit", "Maximum size of the GPU's memory arena, in bytes.", default="all"),
            flag("miopen_conv_exhaustive_search", "Try all kernels of convolutions at the first run."),
            flag("miopen_conv_use_max_workspace", "Let convolutions use unlimited memory.", default="1"),
            flag("tunable_op_enable", "Use what tuning has found."),
            whole(
                "tunable_op_max_tuning_duration_ms",
                "Time limit for tuning one operator, in milliseconds; 0 is no limit.",
            ),
            flag("tunable_op_tuning_enable", "Tune operators while running."),
        ),
        replaced={
            "hip_mem_limit": "`gpu_mem_limit`",
            "conv_algo_search": "`miopen_conv_exhaustive_search`",
        },
    ),
    validation_provider="cpu",
    numerics=Numerics(
        precisions=("mixed-fp16", "fp16"),
    ),
    presence=Presence(
        availability=(
            Availability(
                package="onnxruntime-rocm",
                versions="<1.23",
                platforms=("linux/x64",),
                source="package index: 1.22.2.post3 is the last; options as its source names them",
            ),
        ),
        gone="Release 1.23 of the runtime removed the provider from its source; 1.22.2 is the last that has it",
        needs=(NeedRule(what="AMD's driver and ROCm", check="rocminfo"),),
        instead="migraphx, with onnxruntime-migraphx as runtime.package",
    ),
)
