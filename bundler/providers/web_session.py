"""Attributes of the session options of onnxruntime-web that a profile may set under `session`.

They have the names of the Python runtime's attributes, so that a profile reads alike for every ecosystem; the loader of
web bundles turns them into the runtime's own. The list was read from the declarations and the source of
onnxruntime-web 1.30.0: what it does not read is not here. Its defaults differ: patterns and the arena are off.
"""

from __future__ import annotations

from bundler.providers.knowledge import OptionRule
from bundler.providers.session import MOST_THREADS, SESSION_OPTIONS

_TAKEN = (
    "enable_cpu_mem_arena",
    "enable_mem_pattern",
    "execution_mode",
    "graph_optimization_level",
    "intra_op_num_threads",
    "log_severity_level",
    "log_verbosity_level",
    "logid",
)
_OWN = {
    "enable_cpu_mem_arena": OptionRule(
        key="enable_cpu_mem_arena",
        kind="flag",
        default="false",
        meaning="Keep freed memory in an arena for the next run: faster, but the peak of use stays reserved.",
    ),
    "enable_mem_pattern": OptionRule(
        key="enable_mem_pattern",
        kind="flag",
        default="false",
        meaning="Plan one block for all activations when input shapes repeat; always off on WebGPU.",
    ),
    "intra_op_num_threads": OptionRule(
        key="intra_op_num_threads",
        kind="integer",
        least=0,
        most=MOST_THREADS,
        default="0",
        meaning="Threads inside one node, the caller's included; 0 follows the device's processors. "
        "A page that is not cross-origin isolated has one.",
    ),
}

WEB_SESSION_OPTIONS: tuple[OptionRule, ...] = (
    OptionRule(
        key="enable_graph_capture",
        kind="flag",
        default="false",
        meaning="Record the GPU's commands in the first run and replay them after; WebGPU, fixed shapes.",
    ),
    *(_OWN.get(rule.key, rule) for rule in SESSION_OPTIONS if rule.key in _TAKEN),
)
