"""Attributes of the runtime's session options that a profile may set under `session`.

The list, the types and the defaults are those of `onnxruntime.SessionOptions` 1.31.1, read with `dir()`; a test holds
this table equal to the installed runtime. Outside of these ranges, creating a session failed.
"""

from __future__ import annotations

from bundler.providers.knowledge import OptionRule

MOST_THREADS = 1024
"""More than any machine of a target has, and low enough to catch typing errors."""

_BUNDLER_SETS = "`optimization.level` decides it, and with it the optimisations of the session"
_FILES = "it writes files into the current folder of the application; `bundler bench` times a bundle"
_WRITES = "bundler writes models itself; `optimization.format` chooses the format"

SESSION_OPTIONS: tuple[OptionRule, ...] = (
    OptionRule(
        key="enable_cpu_mem_arena",
        kind="flag",
        default="true",
        meaning="Keep freed CPU memory in an arena for the next run: faster, but the peak of use stays reserved.",
    ),
    OptionRule(
        key="enable_mem_pattern",
        kind="flag",
        default="true",
        meaning="Plan one block for all activations when input shapes repeat.",
    ),
    OptionRule(
        key="enable_mem_reuse", kind="flag", default="true", meaning="Let activations share memory once they are dead."
    ),
    OptionRule(
        key="enable_profiling",
        kind="flag",
        default="false",
        meaning="Write a trace file of every run into the working folder of the device.",
        decided=_FILES,
    ),
    OptionRule(
        key="execution_mode",
        values=("ORT_SEQUENTIAL", "ORT_PARALLEL"),
        default="ORT_SEQUENTIAL",
        meaning="Run independent branches of the graph one after the other, or at once on the inter-op threads.",
    ),
    OptionRule(
        key="execution_order",
        # The third, MEMORY_EFFICIENT, is refused by every build that is not for training (measured).
        values=("DEFAULT", "PRIORITY_BASED"),
        default="DEFAULT",
        meaning="Order in which nodes run where the graph leaves a choice.",
    ),
    OptionRule(
        key="graph_optimization_level",
        values=(
            "ORT_DISABLE_ALL",
            "ORT_ENABLE_BASIC",
            "ORT_ENABLE_EXTENDED",
            "ORT_ENABLE_LAYOUT",
            "ORT_ENABLE_ALL",
        ),
        default="ORT_ENABLE_ALL",
        meaning="Graph optimisations at load time.",
        decided=_BUNDLER_SETS,
    ),
    OptionRule(
        key="inter_op_num_threads",
        kind="integer",
        least=0,
        most=MOST_THREADS,
        default="0",
        meaning="Threads for independent nodes with `execution_mode` ORT_PARALLEL; 0 is one a physical core.",
    ),
    OptionRule(
        key="intra_op_num_threads",
        kind="integer",
        least=0,
        most=MOST_THREADS,
        default="0",
        meaning="Threads inside one node, the caller's included; 0 is one a physical core, each bound to its core.",
    ),
    OptionRule(
        key="log_severity_level",
        kind="integer",
        least=-1,
        most=4,
        default="-1",
        meaning="Minimum severity of log messages: 0 verbose to 4 fatal; -1 is the setting of the process.",
    ),
    OptionRule(
        key="log_verbosity_level",
        kind="integer",
        least=0,
        default="0",
        meaning="Detail of verbose logs.",
    ),
    OptionRule(key="logid", default="", meaning="Name of the session in its logs."),
    OptionRule(
        key="optimized_model_filepath", default="", meaning="Where the optimised model is saved.", decided=_WRITES
    ),
    OptionRule(
        key="profile_file_prefix",
        default="onnxruntime_profile_",
        meaning="Start of the trace file's name.",
        decided=_FILES,
    ),
    OptionRule(
        key="use_deterministic_compute",
        kind="flag",
        default="false",
        meaning="Prefer kernels that give the same bits on every run.",
    ),
    OptionRule(
        key="use_per_session_threads",
        kind="flag",
        default="true",
        meaning="Own threads for each session.",
        decided="threads shared between sessions need an environment that only the application can make",
    ),
)
