"""XNNPACK: Google's kernels for the CPU, in the runtime's packages for phones."""

from __future__ import annotations

from bundler.providers.knowledge import (
    GraphRules,
    Numerics,
    OptionTable,
    Presence,
    ProviderKnowledge,
    SizeRule,
)
from bundler.providers.methods import STATIC_INT8
from bundler.providers.packages import ANDROID_RUNTIME, IOS_RUNTIMES
from bundler.providers.rules import whole
from bundler.providers.session import MOST_THREADS

PROVIDER = ProviderKnowledge(
    name="xnnpack",
    runtime_name="XnnpackExecutionProvider",
    title="XNNPACK",
    package="onnxruntime-android",
    options=OptionTable(
        rules=(
            whole(
                "intra_op_num_threads",
                "Threads of XNNPACK's own pool; give the fast cores to it, set `session.intra_op_num_threads` to 1 and "
                'turn `session_config."session.intra_op.allow_spinning"` off. 0 takes the runtime\'s number.',
                most=MOST_THREADS,
            ),
        ),
        replaced={
            "num_threads": "`intra_op_num_threads`",
            "threads": "`intra_op_num_threads`",
            "use_fp16": "nothing: it runs the precision that the model has",
        },
    ),
    validation_provider="cpu",
    numerics=Numerics(
        # It takes quantised nodes whose activations and weights are of one type (set precision.activation_type =
        # "int8"); what it leaves runs on the CPU, which takes all of these. Not measured on a device.
        precisions=(*STATIC_INT8, "dynamic-int8", "weights-8bit", "weights-4bit", "fp16-weights", "bf16-weights"),
        tries=("static-int8", "static-int8-mixed", "dynamic-int8"),
    ),
    presence=Presence(
        availability=(ANDROID_RUNTIME, *IOS_RUNTIMES),
        instead="the provider cpu, which is the better one on desktops and servers",
    ),
    graph=GraphRules(
        # Convolutions and pooling whose channels, height or width are not known stay with the CPU (source of the
        # runtime).
        free_sizes=(SizeRule(sizes="cpu"),),
    ),
)
