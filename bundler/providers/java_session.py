"""Attributes of the runtime's session options that its Java API can set: for bundles whose loader is in Kotlin.

They have the names of the Python runtime's attributes. The list was read from the methods of
`ai.onnxruntime.OrtSession.SessionOptions` 1.28.0; the C API also has the rest.
"""

from __future__ import annotations

from typing import Final

from bundler.providers.knowledge import OptionRule
from bundler.providers.session import SESSION_OPTIONS

JAVA_ECOSYSTEMS: Final = frozenset({"android", "jvm"})
"""Emitters whose bundles open their sessions through that API."""

_TAKEN: Final = (
    "enable_cpu_mem_arena",
    "enable_mem_pattern",
    "execution_mode",
    "graph_optimization_level",
    "inter_op_num_threads",
    "intra_op_num_threads",
    "log_severity_level",
    "log_verbosity_level",
    "logid",
    "use_deterministic_compute",
)

JAVA_SESSION_OPTIONS: Final[tuple[OptionRule, ...]] = tuple(rule for rule in SESSION_OPTIONS if rule.key in _TAKEN)
