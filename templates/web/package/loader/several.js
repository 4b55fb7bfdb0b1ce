/** @file Bundles of several components: `load`, `probe` and `clearCache`. All components share one runtime. */

import {
  BundleError,
  DisposedError,
  DownloadError,
  FallbackError,
  IncompatibleError,
  InputError,
  IntegrityError,
} from "./errors.js";
import { chooseVariants, finish, probeComponent, readOptions, startDownloads, takeComponent } from "./index.js";
import { BundledModel, importSelfTest, openStream } from "./model.js";
import { adviseInstead, findObstacle, openFirst } from "./variants.js";

/**
 * @typedef {import("./types.js").LoadOptions & { only?: string[], lazy?: boolean, variants?: Record<string, string> }} Options
 * @typedef {import("./variants.js").Request} Request
 * @typedef {import("./opening.js").Opened} Opened
 * @typedef {import("./types.js").ComponentData} ComponentData
 */

/**
 * @param {import("./types.js").PackageData} data what `runtime.js` exports
 * @param {import("./types.js").Platform} platform
 * @returns {{ load: (options?: any) => Promise<any>, probe: () => Promise<any>, clearCache: () => Promise<void> }}
 */
export function makeBundle(data, platform) {
  return {
    load: (options = {}) => load(data, platform, options),
    probe: () => probeAll(data, platform),
    clearCache: () => platform.clearShelf(data.identity.package),
  };
}

/**
 * @param {import("./types.js").PackageData} packaged
 * @param {import("./types.js").Platform} platform
 * @param {Options} options
 */
async function load(packaged, platform, options) {
  const data = readOptions(packaged, platform, options);
  const { components } = data.config;
  for (const name of [...(options.only ?? []), ...Object.keys(options.variants ?? {})]) {
    if (!components.some((component) => component.name === name)) refuseName(name, components);
  }
  const bundle = new Components(data, platform, options);
  if (!options.lazy) await bundle.open(bundle.wanted);
  return bundle;
}

/**
 * @param {string} name
 * @param {import("./types.js").Component[]} components
 * @returns {never}
 */
function refuseName(name, components) {
  throw new InputError(`there is no component ${JSON.stringify(name)}`, {
    hint: `the components are ${components.map((component) => component.name).join(", ")}`,
  });
}

/**
 * @param {import("./types.js").PackageData} data
 * @param {import("./types.js").Platform} platform
 */
async function probeAll(data, platform) {
  readOptions(data, platform, {});
  const found = data.config.components.map(
    async (component) => /** @type {const} */ ([component.name, await probeComponent(takeComponent(data, component))]),
  );
  return Object.fromEntries(await Promise.all(found));
}

/** The open bundle: each component is a member by its name. */
class Components {
  #data;
  #platform;
  #options;
  #closed = false;
  /** @type {Map<string, BundledModel>} */
  #models = new Map();
  /** @type {Map<string, Promise<void>>} openings that are under way */
  #opening = new Map();

  /**
   * @param {import("./types.js").PackageData} data
   * @param {import("./types.js").Platform} platform
   * @param {Options} options
   */
  constructor(data, platform, options) {
    this.#data = data;
    this.#platform = platform;
    this.#options = options;
    const { components } = data.config;
    const only = options.only ?? components.map(({ name }) => name);
    /** @type {string[]} */
    this.wanted = components.map(({ name }) => name).filter((name) => only.includes(name));
    for (const component of components) {
      Object.defineProperty(this, component.name, { value: this.#makeMember(component), enumerable: true });
    }
    Object.defineProperty(this, "wanted", { enumerable: false });
  }

  get report() {
    return Object.fromEntries([...this.#models].map(([name, model]) => [name, model.report]));
  }

  async selfTest() {
    if (this.#closed) throw closed();
    return (await importSelfTest(this.#data))(this);
  }

  /** @param {import("./imports.js").Test} test */
  async testWith(test) {
    /** @type {Record<string, import("./types.js").SelfTest>} */
    const components = {};
    for (const name of this.wanted) components[name] = await (await this.#take(name)).testWith(test);
    return { passed: Object.values(components).every(({ passed }) => passed), components };
  }

  async close() {
    this.#closed = true;
    await Promise.allSettled(this.#opening.values());
    await this.#release();
  }

  /**
   * Open components in parallel. When one fails, all that were opened are closed.
   *
   * @param {string[]} names
   */
  async open(names) {
    const components = this.#data.config.components.filter(({ name }) => names.includes(name));
    const downloads = startDownloads(this.#data, this.#platform, this.#options);
    try {
      const opened = await openAll(this.#data, this.#platform, this.#options, downloads, components);
      await finish(downloads, [...opened.values()], this.#options.signal);
      if (this.#closed) {
        await releaseAll([...opened.values()]);
        throw closed();
      }
      for (const component of components) {
        const taken = /** @type {Opened} */ (opened.get(component.name));
        this.#models.set(component.name, new BundledModel(takeComponent(this.#data, component), this.#platform, taken));
      }
    } finally {
      downloads.close();
    }
  }

  async #release() {
    const models = [...this.#models.values()];
    this.#models.clear();
    await Promise.all(models.map((model) => model.dispose()));
  }

  /** @param {string} name */
  async #take(name) {
    if (this.#closed) throw closed();
    if (!this.wanted.includes(name)) {
      throw new InputError(`the component ${name} was not loaded`, { hint: `name it in load({ only: […] })` });
    }
    if (!this.#models.has(name)) await this.#openLate(name);
    const model = this.#models.get(name);
    if (!model || this.#closed) throw closed();
    return model;
  }

  /** @param {string} name with those that it must run together with */
  async #openLate(name) {
    const { together } = this.#data.config;
    const names = together.includes(name) ? together.filter((one) => this.wanted.includes(one)) : [name];
    const running = this.#opening.get(name);
    if (running) return running;
    const opening = this.open(names).finally(() => names.forEach((one) => this.#opening.delete(one)));
    for (const one of names) this.#opening.set(one, opening);
    return opening;
  }

  /** @param {import("./types.js").Component} component */
  #makeMember(component) {
    const { name, model, signature, preprocessing, metadata } = component;
    return Object.freeze({
      name: model,
      version: this.#data.identity.version,
      inputs: Object.freeze([...signature.inputs]),
      outputs: Object.freeze([...signature.outputs]),
      preprocessing,
      metadata: Object.freeze({ ...metadata }),
      run: async (/** @type {any} */ inputs, /** @type {any} */ options) => (await this.#take(name)).run(inputs, options),
      stream: () => {
        if (this.#closed) throw closed();
        const own = takeComponent(this.#data, component);
        return openStream(own, this.#platform, async (...given) => (await this.#take(name)).runStep(...given));
      },
      selfTest: async () => (await this.#take(name)).selfTest(),
      testWith: async (/** @type {import("./imports.js").Test} */ test) => (await this.#take(name)).testWith(test),
    });
  }
}

const closed = () => new DisposedError("this bundle was closed", { hint: "load it again" });

/**
 * @param {import("./types.js").PackageData} data
 * @param {import("./types.js").Platform} platform
 * @param {Options} options
 * @param {import("./download.js").Downloads} downloads
 * @param {import("./types.js").Component[]} components
 * @returns {Promise<Map<string, Opened>>} by component
 */
async function openAll(data, platform, options, downloads, components) {
  const requests = components.map((component) => {
    const variants = chooseVariants(component, options.variants?.[component.name], data.imports);
    return { data: takeComponent(data, component), platform, downloads, options, variants };
  });
  const apart = requests.filter(({ data: { component } }) => !data.config.together.includes(component.name));
  const joined = requests.filter((request) => !apart.includes(request));
  const groups = [...(joined.length ? [joined] : []), ...apart.map((request) => [request])];
  const build = await chooseBuild(groups);
  /** @type {unknown} */
  let fault;
  const openings = groups.map(async (group) => {
    try {
      return await openGroup(group.map((request) => ({ ...request, build })));
    } catch (error) {
      fault ??= error;
      downloads.close(); // What the others still fetch is of no use.
      throw error;
    }
  });
  const done = await Promise.allSettled(openings);
  const opened = new Map(done.flatMap((one) => (one.status === "fulfilled" ? [...one.value] : [])));
  if (fault === undefined) return opened;
  await releaseAll([...opened.values()]);
  throw fault;
}

/** @param {Opened[]} opened */
const releaseAll = (opened) => Promise.allSettled(opened.map((one) => one.release()));

/**
 * The first build that serves what every group will probably take; none where no build does.
 *
 * @param {Request[][]} groups
 */
async function chooseBuild(groups) {
  /** @type {string[] | null} */
  let shared = null;
  for (const group of groups) {
    for (const { data, variants } of group) {
      const states = await Promise.all(variants.map((variant) => findObstacle(data, variant)));
      const { builds } = variants[states.findIndex(({ reason }) => !reason)] ?? { builds: [] };
      shared = shared === null ? builds : shared.filter((name) => builds.includes(name));
    }
  }
  return shared?.[0];
}

/**
 * One component takes its best variant; several, the first of one name that all of them can open.
 *
 * @param {Request[]} group
 * @returns {Promise<Map<string, Opened>>}
 */
async function openGroup(group) {
  if (group.length > 1) return openTogether(group);
  const [{ data: { component } }] = group;
  try {
    return new Map([[component.name, await openFirst(group[0])]]);
  } catch (error) {
    throw nameComponent(component.name, error);
  }
}

/**
 * @param {Request} request
 * @param {string} name
 */
const takeVariant = ({ variants }, name) => variants.filter((variant) => variant.name === name);

/**
 * @param {Request[]} group
 * @returns {Promise<Map<string, Opened>>}
 */
async function openTogether(group) {
  const [{ data, options, variants }] = group;
  const has = (/** @type {Request} */ one, /** @type {string} */ name) => takeVariant(one, name).length > 0;
  const names = variants.map(({ name }) => name).filter((name) => group.every((one) => has(one, name)));
  const strict = options.strict ?? data.config.fallback === "strict";
  /** @type {Record<string, string>} */
  const rejected = Object.create(null);
  for (const name of strict ? names.slice(0, 1) : names) {
    const openings = group.map((one) => openFirst({ ...one, variants: takeVariant(one, name) }));
    const done = await Promise.allSettled(openings);
    const opened = done.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const failed = done.findIndex(({ status }) => status === "rejected");
    if (failed < 0) {
      const fellBack = Object.keys(rejected).length > 0;
      for (const { report } of opened) Object.assign(report, { rejected: { ...rejected }, fellBack });
      return new Map(group.map((one, index) => [one.data.component.name, opened[index]]));
    }
    await releaseAll(opened);
    const owner = group[failed].data.component.name;
    const { reason } = /** @type {PromiseRejectedResult} */ (done[failed]);
    const ofFiles = reason instanceof DownloadError || reason instanceof IntegrityError;
    if (ofFiles || !(reason instanceof BundleError)) throw nameComponent(owner, reason);
    rejected[name] = `${owner}: ${reason.cause instanceof Error ? reason.cause.message : reason.message}`;
  }
  const who = group.map((one) => one.data.component.name).join(" and ");
  const why = Object.entries(rejected).map(([name, reason]) => `${name}: ${reason}`).join("; ");
  const Kind = strict && names.length > 1 ? FallbackError : IncompatibleError;
  const hint = adviseInstead(data);
  throw new Kind(`there is no variant on which ${who} can run together here`, { why, hint });
}

/** @type {WeakSet<BundleError>} what components share fails with one error for all of them, which is named once */
const named = new WeakSet();

/**
 * @param {string} name
 * @param {unknown} error
 */
function nameComponent(name, error) {
  if (error instanceof BundleError && !named.has(error)) error.message = `${name}: ${error.message}`;
  if (error instanceof BundleError) named.add(error);
  return error;
}
