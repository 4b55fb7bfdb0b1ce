/** The types of this package, for its users (first half) and for the loader itself (second half). */

export type Dimension = number | string | null;

/** The type of one value, as ONNX has them. `shape` is null when the rank is unknown. */
export interface ValueType {
  kind: "tensor" | "sparse_tensor" | "sequence" | "map" | "optional";
  element_type: string | null;
  shape: Dimension[] | null;
  key_type?: string | null;
  element?: ValueType | null;
}

/** One named input or output. An optional input may be left out. */
export interface Port {
  readonly name: string;
  readonly type: Readonly<ValueType>;
  readonly optional: boolean;
}

export interface ProgressEvent {
  phase: "download" | "open" | "ready";
  /** The file that the event is about, as the bundle names it. */
  file: string | null;
  /** Bytes so far, and of all files of the chosen variant. */
  loaded: number;
  total: number;
  /** Whether `file` came from the cache. */
  cached: boolean;
}

export interface LoadOptions {
  /** One variant by name. Without it, the first that can run here. */
  variant?: string;
  /** Fail when the preferred variant cannot run, instead of using the next. */
  strict?: boolean;
  /**
   * CPU threads, from 0 (by the device's processors) to 1024; the bundle's own number without it. More than
   * one requires a cross-origin isolated page. Whether idle threads spin cannot be chosen in a browser.
   */
  threads?: number;
  /** Cache verified files for the next visit (default: true). */
  cache?: boolean;
  onProgress?: (event: ProgressEvent) => void;
  signal?: AbortSignal;
  /**
   * The folder with this package's files where they are not beside its code: on another host, for one. Every file must
   * match its checksum there, too.
   */
  base?: string | URL;
  /** Leave outputs in the device's memory (true), or bring them back (false); the bundle's own choice without it. */
  keepOnDevice?: boolean;
}

/** What the loader did. */
export interface Report {
  variant: string;
  providers: string[];
  /** The compiled form of the runtime: `wasm`, `jspi` or `asyncify`. */
  build: string;
  threads: number;
  crossOriginIsolated: boolean;
  /** Whether the GPU is emulated in software; null where no GPU is used. */
  softwareAdapter: boolean | null;
  adapter: string | null;
  /** Why each earlier variant does not run. */
  rejected: Record<string, string>;
  fellBack: boolean;
  notes: string[];
  /** Whether nothing had to be downloaded. */
  fromCache: boolean;
  seconds: { download: number; open: number };
}

/** One variant as `probe` finds it. */
export interface VariantState {
  name: string;
  available: boolean;
  /** Why it is not available; empty when it is. */
  reason: string;
  software?: boolean;
}

export type NumericData =
  | Float32Array
  | Float64Array
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array;

export type TensorData = NumericData | string[];

/** A value in the memory of the CPU (`location` is `cpu`) or of a device (`gpu-buffer`, `ml-tensor`). */
export interface Tensor {
  readonly type: string;
  readonly dims: readonly number[];
  /** Throws when the value lies in a device's memory: use `getData`. */
  readonly data: TensorData;
  readonly location: string;
  /**
   * The values; brings them from the device's memory first where they lie there, and gives that back unless
   * `releaseData` is false.
   */
  getData(releaseData?: boolean): Promise<TensorData>;
  dispose(): void;
}

/**
 * One input: a typed array where its shape follows from the signature, data with dimensions, or an earlier output.
 * Strings are given as `string[]`, int64 as `BigInt64Array`, bool as `Uint8Array`, float16 as `Uint16Array` (its bits)
 * or `Float16Array`.
 */
export type Value = TensorData | { readonly data: TensorData; readonly dims: readonly number[] } | Tensor;

export type Inputs = Record<string, Value>;
export type Outputs = Record<string, Tensor>;

/** Figures of one output against the golden set; null where they do not apply, or the output could not be judged. */
export interface OutputFigures {
  name: string;
  equal: boolean | null;
  max_absolute: number | null;
  mean_absolute: number | null;
  max_relative: number | null;
  cosine: number | null;
  /** Signal to noise in decibels over all samples, of the signal without its mean. */
  sqnr_db: number | null;
  /** Signal to noise that all samples reach except the lowest tenth (at least one of several). */
  low_sqnr_db: number | null;
  worst_sqnr_db: number | null;
  top1_agreement: number | null;
  /** Share of equal integers, booleans and strings. */
  agreement: number | null;
  /** Why the output could not be compared. */
  mismatch: string | null;
}

export interface SelfTest {
  passed: boolean;
  samples: number;
  /** Whether the recorded inputs were generated from a seed. */
  synthetic: boolean;
  faults: string[];
  /** Why an output's comparison could not have failed, by its name: it is random, or constant in the golden set. */
  unjudged: Record<string, string>;
  outputs: OutputFigures[];
}

export interface RunOptions {
  signal?: AbortSignal;
}

/** A model that is open and ready to run. Concurrent runs are executed one after the other. */
export interface Model {
  readonly name: string;
  readonly version: string;
  readonly inputs: readonly Port[];
  readonly outputs: readonly Port[];
  readonly report: Report;
  /** The preprocessing of images, sound or text with which the accuracy was checked; null if checked on arrays. */
  readonly preprocessing: Readonly<Record<string, unknown>> | null;
  /** The original model's metadata, such as classes: text by whoever made the model. Escape it in markup. */
  readonly metadata: Readonly<Record<string, string>>;
  run(inputs: Inputs, options?: RunOptions): Promise<Outputs>;
  /** In an application that a build tool made, use `selfTest(model)` of the package's import `self-test` instead. */
  selfTest(): Promise<SelfTest>;
  dispose(): Promise<void>;
}

/** A copy of a stream's state, by the names of its inputs. */
export type StreamState = Record<string, { type: string; dims: readonly number[]; data: NumericData }>;

/**
 * Steps of a model with state, one after the other: a second call before the first has ended raises `InputError`. A model
 * has any number of streams.
 */
export interface Stream {
  /** One step: inputs and outputs without the state. A step that fails leaves the state as it was. */
  run(inputs: Inputs, options?: RunOptions): Promise<Outputs>;
  getState(): Promise<StreamState>;
  /** Go on from a state that `getState` gave. */
  setState(state: StreamState): void;
  /** Begin again with the initial state. */
  reset(): void;
  /** Free the state. Every later call raises `DisposedError`. */
  close(): void;
}

/* What follows is the loader's own. */
export interface FileRecord {
  path: string;
  size: number;
  sha256: string;
}

export interface ProviderEntry {
  name: string;
  options: Record<string, string>;
  device: string | null;
}

export interface Variant {
  name: string;
  model: string;
  files: FileRecord[];
  builds: string[];
  providers: ProviderEntry[];
  session: Record<string, unknown>;
  session_config: Record<string, string>;
  disabled_optimizers: string[];
  requires: { systems: string[]; machines: string[]; runtime: string; features?: string[] };
  gate: Gate;
}

export interface Tolerance {
  absolute: number | null;
  relative: number | null;
  sqnr_db?: number | null;
  low_sqnr_db?: number | null;
  worst_sqnr_db?: number | null;
  cosine?: number | null;
  top1_agreement?: number | null;
  agreement?: number | null;
  judged?: boolean;
}

export interface Gate {
  default: Tolerance;
  outputs: Record<string, Tolerance>;
}

export interface Config {
  schema: number;
  name: string;
  target: string;
  components: Component[];
  fallback: "report" | "strict";
  /** Components that run on the variant of one name, all or none. */
  together: string[];
}

/** One model of the bundle. `golden` is the folder of its golden set in the payload. */
export interface Component {
  name: string;
  model: string;
  signature: { inputs: Port[]; outputs: Port[] };
  variants: Variant[];
  golden: string;
  unstable_outputs: string[];
  preprocessing: Record<string, unknown> | null;
  metadata?: Record<string, string>;
  state?: StateLink[];
  fixed_sizes?: FixedSize[];
}

/** `output` of one call becomes `input` of the next; `grows` is the axis along which it becomes longer. */
export interface StateLink {
  input: string;
  output: string;
  initial: "zeros" | "constant" | "file";
  value: number;
  /** The initial value in the payload. */
  file: string;
  shape: number[];
  sha256: string;
  grows: number | null;
}

/** A dimension that the model leaves open and this bundle fixes; `axes` are its axes, by input. */
export interface FixedSize {
  name: string;
  size: number;
  by: "target" | "user" | "model";
  axes: Record<string, number[]>;
}

export interface Part {
  /** Its address in the package. */
  path: string;
  url: string;
  size: number;
  sha256: string;
}

export interface Asset {
  size: number;
  sha256: string;
  parts: Part[];
}

/** What `runtime.js` exports. */
export interface PackageData {
  config: Config;
  assets: Record<string, Asset>;
  builds: Record<string, { module: string; binary: string }>;
  identity: { package: string; version: string; config_sha256: string };
  imports: import("./imports.js").Imports;
  /** The digests of all files that any import keeps for the next visit; where the files are, when the page says so. */
  kept: string[];
  base?: URL;
  /** Only where a component has state. */
  Stream?: import("./imports.js").StreamType;
}

/** The package, as one of its components sees it. */
export interface ComponentData extends PackageData {
  component: Component;
}

/** Where verified bytes are kept between visits. A key is the SHA-256 of what it holds. */
export interface Shelf {
  find(sha256: string): Promise<ArrayBuffer | null>;
  keep(sha256: string, bytes: Uint8Array): Promise<void>;
  /** Remove everything that is not among `known`. */
  tidy(known: Set<string>): Promise<void>;
}

/** What differs between a browser and Node.js. */
export interface Platform {
  name: "browser" | "node";
  /** How many threads make sense here; 1 where there can be only one. */
  threads: number;
  isolated: boolean;
  /** Fill `target` with the bytes of a part, telling how many have come. Throws `DownloadError`. */
  read(part: Part, target: ReadTarget): Promise<Uint8Array>;
  digest(bytes: Uint8Array): Promise<string | null>;
  /** The exports of a new module that is made of these bytes, which were checked. Throws `IncompatibleError`. */
  importModule(bytes: Uint8Array, name: string): Promise<unknown>;
  /** Whether the page's security policy lets the runtime start threads; asked where there can be more than one. */
  canStartThreads(): Promise<boolean>;
  openShelf(packageName: string): Promise<Shelf>;
  clearShelf(packageName: string): Promise<void>;
  now(): number;
}

export interface ReadTarget {
  name: string;
  /** Where the bytes go when the part belongs to a larger file. */
  into: Uint8Array | null;
  fresh: boolean;
  signal: AbortSignal | undefined;
  /** Called with each piece as it arrives; null without a listener. */
  onBytes: ((count: number) => void) | null;
}
