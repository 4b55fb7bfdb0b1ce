"""The CPU provider: in every flavour of the runtime, and the last of every chain."""

from __future__ import annotations

from bundler.providers.knowledge import ProviderKnowledge
from bundler.providers.playbook import MOVED_TO_SESSION

PROVIDER = ProviderKnowledge(
    name="cpu",
    runtime_name="CPUExecutionProvider",
    title="CPU",
    package="onnxruntime",
    # None: the runtime takes any key here, ignores it and reports `{}` (measured with 1.31.1). All that tunes the CPU
    # stands in the session options.
    options=(),
    replaced=MOVED_TO_SESSION,
)
