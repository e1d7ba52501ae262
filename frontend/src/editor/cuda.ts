/** CUDA as Monaco sees it: C++ with the qualifiers, the launch brackets and the names that the compiler gives. */

interface Conf {
  autoClosingPairs?: readonly unknown[];
}
/** The parts of a Monarch definition that are changed; the rest is handed through. */
interface Monarch {
  keywords?: unknown;
  tokenizer: Record<string, unknown[]>;
}

const QUALIFIERS = [
  "__global__",
  "__device__",
  "__host__",
  "__shared__",
  "__constant__",
  "__managed__",
  "__restrict__",
  "__forceinline__",
  "__noinline__",
  "__launch_bounds__",
  "__grid_constant__",
  "__cluster_dims__",
];

const VECTOR_TYPES = ["char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "longlong", "ulonglong", "float", "double"]
  .flatMap((base) => [1, 2, 3, 4].map((n) => `${base}${n}`))
  .concat(["dim3", "half", "half2", "__half", "__half2", "__nv_bfloat16", "__nv_bfloat162", "cudaError_t", "cudaStream_t", "size_t"]);

const VARIABLES = ["threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"];

const INTRINSIC =
  /(?:__syncthreads(?:_count|_and|_or)?|__syncwarp|__shfl(?:_up|_down|_xor)?_sync|__(?:any|all|ballot|activemask|match_any|match_all|reduce_\w+)(?:_sync)?|__ld(?:g|cg|ca|cs)|__(?:threadfence)(?:_block|_system)?|atomic(?:Add|Sub|Exch|Min|Max|Inc|Dec|CAS|And|Or|Xor)(?:_block|_system)?|__(?:expf|logf|powf|sinf|cosf|fdividef|frcp_rn|fsqrt_rn|fmaf_rn|float2half|half2float|popc|clz|ffs)|cuda[A-Z]\w*|rsqrtf?|fmaf?|f(?:max|min)f?)\b(?=\s*\()/;

/** Takes Monaco's own C++ and gives CUDA; the types are whatever Monaco's are. */
export function cudaFrom<C extends Conf, L extends Monarch>(cpp: { conf: C; language: L }): { conf: C; language: L } {
  const keywords: string[] = Array.isArray(cpp.language.keywords) ? (cpp.language.keywords as string[]) : [];
  const root = cpp.language.tokenizer.root ?? [];
  return {
    conf: cpp.conf,
    language: {
      ...cpp.language,
      keywords: [...keywords, ...QUALIFIERS],
      cudaTypes: VECTOR_TYPES,
      cudaVariables: VARIABLES,
      tokenizer: {
        ...cpp.language.tokenizer,
        // The raw string rule stays first: the R of R"(...)" is no identifier.
        root: [
          ...root.slice(0, 1),
          [/<<<|>>>/, "keyword.launch"],
          [INTRINSIC, "support.function"],
          [
            /[a-zA-Z_]\w*/,
            {
              cases: {
                "@cudaTypes": "type",
                "@cudaVariables": "variable.predefined",
                "@keywords": { token: "keyword.$0" },
                "@default": "identifier",
              },
            },
          ],
          ...root.slice(1),
        ],
      },
    },
  };
}
