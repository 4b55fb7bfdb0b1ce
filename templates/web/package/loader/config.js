/** @file What `runtime.json` may contain: known options with valid values, and files of this package. */

import { IncompatibleError } from "./errors.js";

/** @typedef {(value: unknown) => boolean} Rule whether an option has such a value */

/** @type {Rule} */
const flag = (value) => typeof value === "boolean";

/** @type {Rule} */
const text = (value) => typeof value === "string";

/** @type {Rule} */
const integer = (value) => Number.isInteger(value);

/** @type {(...values: string[]) => Rule} */
const one = (...values) => (value) => values.includes(/** @type {string} */ (value));

/** @type {Rule} */
export const threads = (value) => integer(value) && Number(value) >= 0 && Number(value) <= 1024;

/** @type {Record<string, Rule>} attributes of a session's options */
export const SESSION = {
  enable_cpu_mem_arena: flag,
  enable_graph_capture: flag,
  enable_mem_pattern: flag,
  execution_mode: one("ORT_SEQUENTIAL", "ORT_PARALLEL"),
  graph_optimization_level: one(
    "ORT_DISABLE_ALL",
    "ORT_ENABLE_BASIC",
    "ORT_ENABLE_EXTENDED",
    "ORT_ENABLE_LAYOUT",
    "ORT_ENABLE_ALL",
  ),
  intra_op_num_threads: threads,
  log_severity_level: integer,
  log_verbosity_level: integer,
  logid: text,
};

const cacheMode = one("disabled", "lazyRelease", "simple", "bucket");

/** @type {Record<string, Record<string, Rule>>} options of each provider */
export const PROVIDERS = {
  wasm: {},
  webgpu: {
    defaultBufferCacheMode: cacheMode,
    preferredLayout: one("NCHW", "NHWC"),
    queryResolveBufferCacheMode: cacheMode,
    storageBufferCacheMode: cacheMode,
    uniformBufferCacheMode: cacheMode,
    validationMode: one("disabled", "wgpuOnly", "basic", "full"),
  },
  webnn: {
    deviceType: one("cpu", "gpu", "npu"),
    powerPreference: one("default", "low-power", "high-performance"),
  },
};

/** Configuration entries of a session; their values are text. None of them names a file. */
export const ENTRIES = new Set([
  "mlas.disable_kleidiai",
  "mlas.enable_gemm_fastmath_arm64_bfloat16",
  "mlas.kleidiai.conv_igemm_max_work",
  "mlas.nchwc_depthwise_sliding",
  "mlas.nchwc_pointwise_conv_max_input_channel_batch",
  "mlas.qnbit.force_fp32",
  "mlas.use_lut_gemm",
  "optimization.constant_folding_max_output_size_in_bytes",
  "optimization.enable_cast_chain_elimination",
  "optimization.enable_gelu_approximation",
  "session.allow_released_opsets_only",
  "session.disable_aot_function_inlining",
  "session.disable_cpu_ep_fallback",
  "session.disable_double_qdq_remover",
  "session.disable_model_compile",
  "session.disable_prepacking",
  "session.disable_qdq_constant_folding",
  "session.disable_quant_qdq",
  "session.dynamic_block_base",
  "session.enable_dq_matmulnbits_fusion",
  "session.enable_moe_expert_counting",
  "session.enable_moe_expert_statistics",
  "session.enable_quant_qdq_cleanup",
  "session.fail_on_suboptimal_compiled_model",
  "session.force_spinning_stop",
  "session.function_expansion_byte_limit",
  "session.function_expansion_node_limit",
  "session.gqa_value_layout",
  "session.graph_optimizations_loop_level",
  "session.inter_op.allow_spinning",
  "session.inter_op.spin_backoff_max",
  "session.inter_op.spin_duration_us",
  "session.intra_op.allow_spinning",
  "session.intra_op.spin_backoff_max",
  "session.intra_op.spin_duration_us",
  "session.intra_op_thread_affinities",
  "session.layer_assignment_settings",
  "session.max_shape_override",
  "session.moe_expert_counter_alpha",
  "session.moe_expert_counter_beta",
  "session.name_based_layer_assignment",
  "session.prepack.enable_parallel",
  "session.qdq_matmulnbits_accuracy_level",
  "session.qdq_matmulnbits_block_size",
  "session.record_ep_graph_assignment_info",
  "session.set_denormal_as_zero",
  "session.strict_shape_type_inference",
  "session.strict_workspace_verification",
  "session.use_device_allocator_for_initializers",
  "session.use_env_allocators",
  "session.x64quantprecision",
]);

/**
 * Raises `IncompatibleError`, which lists every fault.
 *
 * @param {import("./types.js").PackageData} data
 */
export function checkConfig({ assets, config }) {
  const faults = config.components.flatMap((component) => {
    const label = config.components.length > 1 ? `${component.name}/` : "";
    return component.variants.flatMap((variant) =>
      [...findStrangeOptions(variant), ...findStrangeFiles(variant, assets)].map(
        (fault) => `${label}${variant.name}: ${fault}`,
      ),
    );
  });
  if (!faults.length) return;
  throw new IncompatibleError("runtime.json has values that bundler never writes", {
    why: faults.join("; ").slice(0, LONGEST),
    hint: "do not use this bundle: it was altered, or made by something else",
  });
}

const LONGEST = 1000; // Maximum characters of faults in an error.

/**
 * @param {import("./types.js").Variant} variant
 * @returns {string[]}
 */
function findStrangeOptions({ providers, session, session_config }) {
  const entries = Object.fromEntries([...ENTRIES].map((name) => [name, text]));
  return [
    ...findUnknown("session", session, SESSION),
    ...findUnknown("session_config", session_config, entries),
    ...providers.flatMap(({ name, options }) =>
      Object.hasOwn(PROVIDERS, name) ? findUnknown(name, options, PROVIDERS[name]) : [`no provider ${quote(name)}`],
    ),
  ];
}

/**
 * @param {string} where
 * @param {Record<string, unknown>} given
 * @param {Record<string, Rule>} rules
 */
function findUnknown(where, given, rules) {
  return Object.entries(given)
    .filter(([name, value]) => !Object.hasOwn(rules, name) || !rules[name](value))
    .map(([name, value]) => `${where} has no ${quote(name)} of ${quote(value)}`);
}

/**
 * The code that came with the files knows their names, sizes and digests; all are of this package.
 *
 * @param {import("./types.js").Variant} variant
 * @param {Record<string, import("./types.js").Asset>} assets
 */
function findStrangeFiles({ model, files }, assets) {
  const strange = files.filter(({ path, size, sha256 }) => {
    const asset = Object.hasOwn(assets, `payload/${path}`) ? assets[`payload/${path}`] : null;
    return !isInside(path) || asset?.sha256 !== sha256 || asset.size !== size;
  });
  const lost = files.some(({ path }) => path === model) ? [] : [{ path: model }];
  return [...strange, ...lost].map(({ path }) => `${quote(path)} is not among the files of this package`);
}

/**
 * Whether a path stays in its folder: no URL, no drive, no parent or root.
 *
 * @param {string} path
 */
function isInside(path) {
  return !/[\\:]/.test(path) && path.split("/").every((part) => !["", ".", ".."].includes(part));
}

/** @param {unknown} value */
const quote = (value) => JSON.stringify(value)?.slice(0, 80);
