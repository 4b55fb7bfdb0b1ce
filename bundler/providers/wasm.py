"""The CPU in a browser: the WebAssembly build of the runtime, in every build and the last of every web chain."""

from __future__ import annotations

from bundler.providers.cpu import PROVIDER as CPU
from bundler.providers.knowledge import GraphRules, Numerics, OptionTable, Presence, ProviderKnowledge, RuntimeBuild
from bundler.providers.playbook import MOVED_TO_SESSION

_OF_OTHER_RUNTIMES = ("static-a16w8", "static-qnn", "static-qnn-a16w8", "static-tensorrt")

PROVIDER = ProviderKnowledge(
    name="wasm",
    runtime_name="wasm",
    title="WebAssembly",
    graph=GraphRules(takes_fusions=True),
    package="onnxruntime-web",
    options=OptionTable(
        # None: the runtime reads none (onnxruntime-web 1.30.0). All that tunes it is in the session options.
        rules=(),
        replaced=MOVED_TO_SESSION,
    ),
    presence=Presence(
        # The only build without a GPU's code, and with that the smallest; the others have this provider, too.
        builds=(
            RuntimeBuild(
                name="wasm",
                module="ort.wasm.bundle.min.mjs",
                binary="ort-wasm-simd-threaded.wasm",
                browsers="every browser with WebAssembly SIMD: those of 2023 and later",
            ),
        ),
    ),
    validation_provider="cpu",
    numerics=Numerics(
        # The CPU's kernels, and so its methods, but for those that only other runtimes want.
        precisions=tuple(name for name in CPU.numerics.precisions if name not in _OF_OTHER_RUNTIMES),
        tries=CPU.numerics.tries,
    ),
)
