"""Configuration entries of a session that a profile may set under `session_config`.

The list was read from the strings of the runtime's libraries (1.31.1, x86_64 and aarch64) and from the header of
configuration keys; a test holds it against the installed library. The runtime silently accepts any key, so an unknown
key would have no effect. Entries of one provider (`ep.cuda.…`) are in that provider's file.
"""

from __future__ import annotations

from bundler.providers.knowledge import OptionRule
from bundler.providers.rules import BUILDING_PATH, DEBUGGING

_FORMAT = "bundler reads and writes models itself; `optimization.format` chooses the format"
_BUNDLER_SETS = "bundler sets it for the stages that it optimised ahead of time"
_CONTEXT = "a stage makes pre-compiled contexts where the provider can take them"
_NAME = "(undocumented; by its name)"
_LOADER = "the loader decides it, because it owns the memory"


def _flag(key: str, meaning: str, *, default: str = "0", decided: str = "") -> OptionRule:
    return OptionRule(key=key, kind="flag", default=default, meaning=meaning, decided=decided)


def _count(key: str, meaning: str, *, default: str, least: int = 0, most: int | None = None) -> OptionRule:
    return OptionRule(key=key, kind="integer", default=default, meaning=meaning, least=least, most=most)


def _text(key: str, meaning: str, *, decided: str = "") -> OptionRule:
    return OptionRule(key=key, default="", meaning=meaning, decided=decided)


_THREADS = (
    _flag("session.intra_op.allow_spinning", "Idle intra-op threads spin for a while before they sleep.", default="1"),
    _flag("session.inter_op.allow_spinning", "Idle inter-op threads spin for a while before they sleep.", default="1"),
    _count("session.intra_op.spin_duration_us", "How long intra-op threads spin, in microseconds.", default=""),
    _count("session.inter_op.spin_duration_us", "How long inter-op threads spin, in microseconds.", default=""),
    _count(
        "session.intra_op.spin_backoff_max",
        "Longest pause inside the spin loop of intra-op threads, doubling up to it; more burns less power.",
        default="1",
        least=1,
        most=64,
    ),
    _count(
        "session.inter_op.spin_backoff_max",
        "Longest pause inside the spin loop of inter-op threads, doubling up to it; more burns less power.",
        default="1",
        least=1,
        most=64,
    ),
    _flag("session.force_spinning_stop", "Threads stop spinning at once when the last run returns: cool while idle."),
    _count(
        "session.dynamic_block_base",
        "Split work into blocks that shrink towards the end; 0 is off, 4 is usual. Steadier on busy or uneven cores.",
        default="0",
    ),
    _text(
        "session.intra_op_thread_affinities",
        "Processors of each intra-op thread but the caller's: `1,2;3-4`. As many groups as threads less one.",
    ),
)

_NUMERICS = (
    _flag("session.set_denormal_as_zero", "Treat denormal numbers as zero: faster where they occur, less exact."),
    _flag("session.disable_quant_qdq", "Do not fuse QDQ groups into quantised operators."),
    _flag("session.disable_double_qdq_remover", "Keep the middle pair of Q-DQ-Q-DQ."),
    _flag("session.enable_quant_qdq_cleanup", "Drop Q-DQ pairs between float operators: faster, less exact."),
    _flag("session.disable_qdq_constant_folding", f"Do not fold constants through QDQ nodes {_NAME}."),
    _flag("session.enable_dq_matmulnbits_fusion", "Fuse DQ and MatMul into MatMulNBits."),
    _count(
        "session.qdq_matmulnbits_accuracy_level",
        "Minimum precision of MatMulNBits made from DQ and MatMul: 0 unset, 1 float32, 2 float16, 3 bfloat16, 4 int8.",
        default="4",
        most=4,
    ),
    _count("session.qdq_matmulnbits_block_size", "Block size of MatMulNBits made from DQ and MatMul.", default=""),
    _flag("session.x64quantprecision", "Use slower U8U8 products on x64 without VNNI, where U8S8 overflows."),
    _flag("optimization.enable_gelu_approximation", "Replace Gelu by a faster approximation: less exact."),
    _flag("optimization.enable_cast_chain_elimination", "Remove chains of casts: may lose rounding that they did."),
    _flag("mlas.enable_gemm_fastmath_arm64_bfloat16", "Float32 products through bfloat16 on Arm that has it."),
    _flag("mlas.qnbit.force_fp32", "Compute MatMulNBits in float32."),
    _flag("mlas.use_lut_gemm", f"Use look-up tables for low-bit products {_NAME}."),
    _flag("mlas.disable_kleidiai", "Do not use Arm's KleidiAI kernels."),
    _text("mlas.kleidiai.conv_igemm_max_work", f"Largest convolution that KleidiAI's indirect product takes {_NAME}."),
    _text("mlas.nchwc_depthwise_sliding", f"Sliding-window kernel for depthwise convolutions in NCHWc {_NAME}."),
    _text(
        "mlas.nchwc_pointwise_conv_max_input_channel_batch",
        f"Input channels at once in pointwise NCHWc convolutions {_NAME}.",
    ),
)

_GRAPH = (
    _flag("session.disable_aot_function_inlining", "Do not inline model functions before optimisation."),
    _count(
        "session.function_expansion_node_limit",
        f"Maximum number of nodes that inlining of functions may add {_NAME}.",
        default="",
        least=1,
    ),
    _count(
        "session.function_expansion_byte_limit",
        f"Maximum number of bytes that inlining of functions may add {_NAME}.",
        default="",
        least=1,
    ),
    _count("session.graph_optimizations_loop_level", "How often optimisers run again: 0, 1 or 2.", default="1", most=2),
    _count(
        "optimization.constant_folding_max_output_size_in_bytes",
        "Largest constant that folding may make, in bytes.",
        default="",
    ),
    _text(
        "optimization.disable_specified_optimizers",
        "Optimisers that do not run at load time, separated by semicolons.",
        decided=_BUNDLER_SETS,
    ),
    OptionRule(
        key="optimization.minimal_build_optimizations",
        values=("", "save", "apply"),
        default="",
        meaning="How optimisations for minimal builds are treated.",
        decided=_BUNDLER_SETS,
    ),
    _flag(
        "session.enable_saved_runtime_optimizations",
        "Apply optimisations saved in an ORT model.",
        decided=_BUNDLER_SETS,
    ),
    _flag("session.qdqisint8allowed", "Allow int8 QDQ fusions when a model is written for Arm.", decided=_BUNDLER_SETS),
    _flag("session.strict_shape_type_inference", "Fail on inconsistent inferred shapes."),
    _flag("session.allow_released_opsets_only", "Refuse opsets newer than the latest released.", default="1"),
    _text("session.max_shape_override", "Largest shapes of dynamic inputs for planning: `input:[1,3,224,224];…`."),
    OptionRule(
        key="session.gqa_value_layout",
        values=("BNSH", "BNHS"),
        default="BNSH",
        meaning="Layout of the value cache that the caller binds to GroupQueryAttention.",
    ),
    _flag(
        "session.debug_layout_transformation",
        "Write the model after each step of layout transformation.",
        decided=DEBUGGING,
    ),
)

_MEMORY = (
    _flag("session.disable_prepacking", "Do not repack weights when a session opens: less memory, slower runs."),
    _flag("session.prepack.enable_parallel", "Repack weights on all intra-op threads: opens faster."),
    _flag("session.use_env_allocators", "Use the allocators of the process's environment."),
    _flag("session.use_device_allocator_for_initializers", "Allocate weights outside the arena."),
    _flag("session.use_ort_model_bytes_directly", "Use the caller's bytes of an ORT model.", decided=_LOADER),
    _flag("session.use_ort_model_bytes_for_initializers", "Use weights inside those bytes.", decided=_LOADER),
    _flag("session.use_memory_mapped_ort_model", "Map an ORT model's file into memory.", decided=_LOADER),
    _flag(
        "session.use_external_initializer_file_buffers_directly",
        "Use the caller's buffers of external data.",
        decided=_LOADER,
    ),
    _text("session.model_external_initializers_file_folder_path", "Folder of external data.", decided=_LOADER),
    _text(
        "session.collect_node_memory_stats_to_file",
        "Write the memory use of each node as CSV into this file.",
        decided=DEBUGGING,
    ),
)

_PLACEMENT = (
    _flag(
        "session.disable_cpu_ep_fallback",
        "Opening fails when the chain's providers do not take the whole graph; the chain must then not name the CPU.",
    ),
    _flag("session.record_ep_graph_assignment_info", "Record which provider took which nodes."),
    _flag("session.disable_model_compile", "Fail instead of compiling a model on the device."),
    _flag("session.fail_on_suboptimal_compiled_model", "Fail when a compiled model is not the best for the device."),
    _flag("session.strict_workspace_verification", f"Fail where a kernel's workspace is larger than planned {_NAME}."),
    _text("session.layer_assignment_settings", "Devices for annotated layers: `cpu(embed); …`."),
    _text("session.name_based_layer_assignment", "Devices for nodes by parts of their names: `cpu(embed); …`."),
    _text("session.node_partition_config_file", "File that spreads nodes over logical streams.", decided=BUILDING_PATH),
    _text(
        "session.resource_cuda_partitioning_settings",
        "Memory limit and statistics file for placing nodes.",
        decided=BUILDING_PATH,
    ),
)

_EXPERTS = (
    _flag("session.enable_moe_expert_counting", f"Count how often each expert of a mixture is used {_NAME}."),
    _flag("session.enable_moe_expert_statistics", f"Gather statistics of the experts of a mixture {_NAME}."),
    _text("session.moe_expert_counter_alpha", f"Factor alpha of the expert counters {_NAME}."),
    _text("session.moe_expert_counter_beta", f"Factor beta of the expert counters {_NAME}."),
    _text(
        "session.moe_expert_counter_state_file",
        f"File that keeps the expert counters between runs {_NAME}.",
        decided=BUILDING_PATH,
    ),
)

_WRITING = (
    OptionRule(
        key="session.load_model_format",
        values=("ORT", "ONNX"),
        default="",
        meaning="Format of the model that is opened.",
        decided=_FORMAT,
    ),
    OptionRule(
        key="session.save_model_format",
        values=("ORT", "ONNX"),
        default="",
        meaning="Format of the model that is saved.",
        decided=_FORMAT,
    ),
    _text(
        "session.optimized_model_external_initializers_file_name", "File for weights that are saved.", decided=_FORMAT
    ),
    OptionRule(
        key="session.optimized_model_external_initializers_min_size_in_bytes",
        kind="integer",
        least=0,
        default="",
        meaning="Minimum size of weights that are saved outside the model.",
        decided=_FORMAT,
    ),
    _flag("session.save_external_prepacked_constant_initializers", "Save repacked weights too.", decided=_FORMAT),
    _flag("session.compile_only", "The session only compiles.", decided=_CONTEXT),
    _flag("ep.context_enable", "Write a pre-compiled context model.", decided=_CONTEXT),
    _text("ep.context_file_path", "Where the context model is written.", decided=_CONTEXT),
    _flag("ep.context_embed_mode", "Write the context into the model.", decided=_CONTEXT),
    _text("ep.context_model_external_initializers_file_name", "File for weights of the rest.", decided=_CONTEXT),
    _text("ep.context_source_model_path", "Model that a context without weights was made from.", decided=_CONTEXT),
    _flag(
        "ep.share_ep_contexts",
        "Sessions take the graphs of one pre-compiled context from each other.",
        decided="bundler sets it where it compiled components into one context",
    ),
    _flag("ep.enable_weightless", "Write a context without weights.", decided=_CONTEXT),
)

SESSION_CONFIG: tuple[OptionRule, ...] = tuple(
    sorted((*_THREADS, *_NUMERICS, *_GRAPH, *_MEMORY, *_PLACEMENT, *_EXPERTS, *_WRITING), key=lambda rule: rule.key)
)
