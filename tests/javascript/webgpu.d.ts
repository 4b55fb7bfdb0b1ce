// WebGPU's constants, which TypeScript's library leaves out. Values: https://www.w3.org/TR/webgpu/#buffer-usage
declare const GPUBufferUsage: Readonly<
  Record<
    "MAP_READ" | "MAP_WRITE" | "COPY_SRC" | "COPY_DST" | "INDEX" | "VERTEX" | "UNIFORM" | "STORAGE" | "INDIRECT" | "QUERY_RESOLVE",
    number
  >
>;
declare const GPUMapMode: Readonly<Record<"READ" | "WRITE", number>>;
