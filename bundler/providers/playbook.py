"""Outdated keys from widely copied examples, each with what to use instead.

The runtime accepts most of them without an error, although they do nothing. Checked against the runtime 1.31.1
and the provider packages of that time. Replacements for one provider are in its own file.
"""

from __future__ import annotations

from collections.abc import Mapping

MOVED_TO_SESSION: Mapping[str, str] = {
    "use_arena": "`session.enable_cpu_mem_arena`",
    "arena_extend_strategy": "`session.enable_cpu_mem_arena` (the strategy is an option of GPU providers)",
    "enable_cpu_mem_arena": "`session.enable_cpu_mem_arena`",
    "enable_mem_pattern": "`session.enable_mem_pattern`",
    "intra_op_num_threads": "`session.intra_op_num_threads`",
    "inter_op_num_threads": "`session.inter_op_num_threads`",
    "num_threads": "`session.intra_op_num_threads`",
    "num_of_threads": "`session.intra_op_num_threads`",
    "execution_mode": "`session.execution_mode`",
    "graph_optimization_level": "`optimization.level` of the profile",
    "allow_spinning": '`session_config."session.intra_op.allow_spinning"`',
    "enable_dynamic_shapes": "nothing: the CPU takes dynamic shapes; `dimensions` of the profile fixes them",
    "preferred_memory_format": "nothing: the runtime chooses the memory layout for the CPU that it runs on",
    "use_fp16": "nothing: the CPU runs the precision that the model has",
}
"""Keys found among the options of the CPU provider, which has no options."""

REPLACED_IN_SESSION: Mapping[str, str] = {
    "use_arena": "`session.enable_cpu_mem_arena`",
    "num_threads": "`session.intra_op_num_threads`",
    "intra_op_threads": "`session.intra_op_num_threads`",
    "inter_op_threads": "`session.inter_op_num_threads`",
    "session_log_severity_level": "`session.log_severity_level`",
    "log_level": "`session.log_severity_level`",
    "session_logid": "`session.logid`",
    "log_id": "`session.logid`",
    "optimization_level": "`optimization.level` of the profile",
    "session_thread_pool_size": "`session.intra_op_num_threads`",
    "enable_sequential_execution": "`session.execution_mode`",
    "max_num_graph_transformation_steps": "nothing: the runtime removed it",
    "profiling": "`session.enable_profiling`",
    "profiling_level": "`session.enable_profiling`; the level is an option of the provider",
    "coreml_flags": "the options of the provider, by name; the bit mask is of the C interface only",
    "enable_dynamic_shapes": "`dimensions` of the profile, for the sizes to fix",
    "qnn_context_cache_enable": '`session_config."ep.context_enable"`, which bundler sets itself',
    "qnn_context_cache_path": '`session_config."ep.context_file_path"`, which bundler sets itself',
}
"""Keys found under `session`."""

_ATTRIBUTES = (
    "enable_cpu_mem_arena",
    "enable_mem_pattern",
    "enable_profiling",
    "execution_mode",
    "graph_optimization_level",
    "inter_op_num_threads",
    "intra_op_num_threads",
    "log_severity_level",
    "log_verbosity_level",
    "optimized_model_filepath",
    "use_deterministic_compute",
    "use_per_session_threads",
)
"""Attributes whose names, with `session.` before them, are strings of the runtime's library too, but have no effect as
configuration entries (measured with 1.31.1: `session.enable_profiling` wrote no trace)."""

REPLACED_IN_SESSION_CONFIG: Mapping[str, str] = {
    **{f"session.{name}": f"the attribute `session.{name}`, without a prefix" for name in _ATTRIBUTES},
    "session.log_id": "the attribute `session.logid`",
    "session.enable_quant_qdq": "`session.disable_quant_qdq`, with the opposite value",
    "session.disable_aot_inlining": "`session.disable_aot_function_inlining`",
    "session.intra_op_allow_spinning": "`session.intra_op.allow_spinning`",
    "session.inter_op_allow_spinning": "`session.inter_op.allow_spinning`",
    "ep.cuda.use_arena": "nothing: it is the example in the header's comment, no key",
    "qnn_context_cache_enable": "`ep.context_enable`, which bundler sets itself",
    "qnn_context_cache_path": "`ep.context_file_path`, which bundler sets itself",
    "memory.enable_memory_arena_shrinkage": "nothing here: it is an option of a run, given with each call",
    "optimization.memory_optimizer_config": "nothing: it is of training builds",
    "optimization.enable_memory_probe_recompute_config": "nothing: it is of training builds",
    "session.intra_op_thread_affinity": "`session.intra_op_thread_affinities`",
}
"""Keys found under `session_config`."""
