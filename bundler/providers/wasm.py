"""The CPU in a browser: the WebAssembly build of the runtime, in every build and the last of every web chain."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge
from bundler.providers.playbook import MOVED_TO_SESSION

PROVIDER = ProviderKnowledge(
    name="wasm",
    runtime_name="wasm",
    title="WebAssembly",
    package="onnxruntime-web",
    # None: the runtime reads none (onnxruntime-web 1.30.0). All that tunes it stands in the session options.
    options=(),
    replaced=MOVED_TO_SESSION,
    # The only build without a GPU's code, and with that the smallest; the others have this provider, too.
    builds=("wasm",),
    rehearsed_by="cpu",
    precisions=(
        "static-int8",
        "dynamic-int8",
        "static-int8-mixed",
        "static-int8-percentile",
        "static-int8-full",
        "nncf-int8",
        "weights-8bit",
        "weights-4bit",
        "weights-4bit-hqq",
        "weights-4bit-gptq",
        "mixed-fp16",
        "fp16",
        "fp16-weights",
        "bf16-weights",
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
)
