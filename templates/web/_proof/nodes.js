// How many nodes of the graph each provider took, as the runtime logs it when a session is made.

/** The runtime's line, in both of its wordings: `Node(s) placed on [WebGpuExecutionProvider]. Number of nodes: 12`. */
const PLACED = /placed on \[(\w+)\]\. Number of nodes: (\d+)/g;

/** What the runtime logs below a warning, and nobody wants on the console: `[V:onnxruntime:…` */
const CHATTER = /\[[VI]:onnxruntime:/;

/** At this level the runtime tells where it places nodes. */
const VERBOSE = 0;

/** @typedef {{create(model: unknown, options?: object): Promise<unknown>}} SessionType */

/** @type {Record<string, number>} */
let nodes = {};

/**
 * Have every session of this page tell where its nodes go, and listen. A module is imported once for a page, so ours is
 * the loader's; should it import its runtime in another way, nothing is counted and nothing else changes.
 */
export async function watchSessions() {
  const path = "/runtime.js";
  const { builds } = await import(path);
  for (const method of /** @type {const} */ (["log", "info", "warn", "error", "debug"])) listen(method);
  for (const { module } of Object.values(builds)) {
    const runtime = await import(new URL(module, new URL("/", import.meta.url)).href).catch(() => null);
    if (runtime) makeTalkative(runtime.InferenceSession);
  }
}

/** @returns {Record<string, number>} what was heard since the last time */
export function countNodes() {
  const counted = nodes;
  nodes = {};
  return counted;
}

/** @param {SessionType} type */
function makeTalkative(type) {
  const create = type.create.bind(type);
  type.create = (model, options) => create(model, { ...options, logSeverityLevel: VERBOSE });
}

/** @param {"log"|"info"|"warn"|"error"|"debug"} method */
function listen(method) {
  const say = console[method].bind(console);
  console[method] = (...words) => {
    const text = words.join(" ");
    for (const [, provider, count] of text.matchAll(PLACED)) nodes[provider] = (nodes[provider] ?? 0) + Number(count);
    if (!CHATTER.test(text)) say(...words);
  };
}
