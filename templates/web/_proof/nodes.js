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
 * Have every session of this page tell where its nodes go, and listen. The loader keeps the modules that it has made in
 * a map that all packages of a page share; should it keep them elsewhere, nothing is counted and nothing else changes.
 */
export function watchSessions() {
  for (const method of /** @type {const} */ (["log", "info", "warn", "error", "debug"])) listen(method);
  /** @type {Map<string, Promise<any>>} */
  const modules = (/** @type {any} */ (globalThis)[Symbol.for("bundler.modules")] ??= new Map());
  const keep = modules.set.bind(modules);
  modules.set = (key, module) => keep(key, module.then(makeTalkative));
}

/** @returns {Record<string, number>} what arrived since the last call */
export function countNodes() {
  const counted = nodes;
  nodes = {};
  return counted;
}

/**
 * @param {{InferenceSession: SessionType}} runtime the exports of its module
 * @returns {object}
 */
function makeTalkative(runtime) {
  const type = runtime.InferenceSession;
  const create = type.create.bind(type);
  type.create = (model, options) => create(model, { ...options, logSeverityLevel: VERBOSE });
  return runtime;
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
