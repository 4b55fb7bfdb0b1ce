/** @file Session options of `runtime.json` (by Python's names), converted for the web runtime. */

const LEVELS = /** @type {Record<string, string>} */ ({
  ORT_DISABLE_ALL: "disabled",
  ORT_ENABLE_BASIC: "basic",
  ORT_ENABLE_EXTENDED: "extended",
  ORT_ENABLE_LAYOUT: "layout",
  ORT_ENABLE_ALL: "all",
});
const MODES = /** @type {Record<string, string>} */ ({ ORT_SEQUENTIAL: "sequential", ORT_PARALLEL: "parallel" });

/** @type {Record<string, (value: any) => Record<string, unknown>>} */
const OPTIONS = {
  graph_optimization_level: (value) => ({ graphOptimizationLevel: LEVELS[value] ?? value }),
  execution_mode: (value) => ({ executionMode: MODES[value] ?? value }),
  enable_mem_pattern: (value) => ({ enableMemPattern: value }),
  enable_cpu_mem_arena: (value) => ({ enableCpuMemArena: value }),
  log_severity_level: (value) => ({ logSeverityLevel: value }),
  log_verbosity_level: (value) => ({ logVerbosityLevel: value }),
  logid: (value) => ({ logId: value }),
  enable_graph_capture: (value) => ({ enableGraphCapture: value }),
};

/** Types that can stay in the device's memory, by the runtime's name of that memory. */
const ON_DEVICE = /** @type {Record<string, string[]>} */ ({
  "gpu-buffer": ["float32", "float16", "int32", "int64", "uint32", "uint8", "bool", "uint4", "int4"],
  "ml-tensor": ["float32", "float16", "int32", "int64", "uint32", "uint64", "int8", "uint8", "bool", "uint4", "int4"],
});

/**
 * @param {import("./types.js").Variant} variant
 * @param {import("./types.js").Port[]} outputs
 * @param {string | null} device where outputs stay
 * @param {{ path: string, data: Uint8Array }[]} externalData
 * @param {import("./types.js").StateLink[]} [state] stays in the GPU's memory, wherever other outputs go
 * @returns {Record<string, unknown>}
 */
export function makeOptions(variant, outputs, device, externalData, state = []) {
  /** @type {Record<string, unknown>} */
  const options = { executionProviders: chain(variant.providers), logSeverityLevel: 3 };
  for (const [name, value] of Object.entries(variant.session)) Object.assign(options, OPTIONS[name]?.(value)); // Threads are the instance's.
  const entries = { ...variant.session_config };
  if (variant.disabled_optimizers.length)
    entries["optimization.disable_specified_optimizers"] = variant.disabled_optimizers.join(";");
  if (Object.keys(entries).length) options.extra = entries;
  if (externalData.length) options.externalData = externalData;
  if (device) options.preferredOutputLocation = locate(outputs, device);
  else if (state.length && variant.providers[0].name === "webgpu") {
    const held = new Set(state.map(({ output }) => output));
    options.preferredOutputLocation = {
      ...locate(outputs, ""),
      ...locate(outputs.filter(({ name }) => held.has(name)), "gpu-buffer"),
    };
  }
  return options;
}

/**
 * The CPU is always the last provider, without being named. Named after another provider, it would let the runtime
 * silently continue without that one.
 *
 * @param {import("./types.js").ProviderEntry[]} providers
 */
function chain(providers) {
  const others = providers.filter((provider) => provider.name !== "wasm");
  return (others.length ? others : providers).map(({ name, options }) => ({ name, ...options }));
}

/**
 * @param {import("./types.js").Port[]} outputs
 * @param {string} device
 */
function locate(outputs, device) {
  const places = Object.create(null);
  for (const { name, type } of outputs) {
    places[name] = ON_DEVICE[device]?.includes(type.element_type ?? "") ? device : "cpu";
  }
  return places;
}
