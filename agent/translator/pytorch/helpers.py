"""Device functions that the kernels call, written out only where they are used."""

from __future__ import annotations

from collections.abc import Iterable

_WARP = """template <typename T>
__device__ T warp_{name}(T value) {{
    for (int distance = 16; distance > 0; distance /= 2) {{
        const T other = __shfl_xor_sync(0xffffffffu, value, distance);
        value = {combine};
    }}
    return value;
}}
"""
_BLOCK = """// `partial` has room for one value a warp and is used once.
template <typename T>
__device__ T block_{name}(T value, T *partial, T neutral) {{
    const int lane = threadIdx.x % 32;
    value = warp_{name}(value);
    if (lane == 0) partial[threadIdx.x / 32] = value;
    __syncthreads();
    return warp_{name}(lane < blockDim.x / 32 ? partial[lane] : neutral);
}}
"""
_WARP_ARG = """template <typename T>
__device__ void warp_{name}(T &best, long long &place) {{
    for (int distance = 16; distance > 0; distance /= 2) {{
        const T other = __shfl_xor_sync(0xffffffffu, best, distance);
        const long long there = __shfl_xor_sync(0xffffffffu, place, distance);
        if ({beats}(other, best) || (!{beats}(best, other) && there < place)) {{
            best = other;
            place = there;
        }}
    }}
}}
"""
_BLOCK_ARG = """template <typename T>
__device__ void block_{name}(T &best, long long &place, T *bests, long long *places) {{
    const int lane = threadIdx.x % 32;
    warp_{name}(best, place);
    if (lane == 0) {{
        bests[threadIdx.x / 32] = best;
        places[threadIdx.x / 32] = place;
    }}
    __syncthreads();
    const int mine = lane < blockDim.x / 32 ? lane : 0;
    best = bests[mine];
    place = places[mine];
    warp_{name}(best, place);
}}
"""
_COMBINE = {
    "sum": "value + other",
    "prod": "value * other",
    "max": "larger(value, other)",
    "min": "smaller(value, other)",
    "any": "value || other",
    "all": "value && other",
}

#: name -> (source, names of helpers it calls)
HELPERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "larger": (
        "// A NaN wins, as in torch.\n"
        "template <typename T>\n__device__ T larger(T a, T b) { return a > b || a != a ? a : b; }\n",
        (),
    ),
    "smaller": (
        "// A NaN wins, as in torch.\n"
        "template <typename T>\n__device__ T smaller(T a, T b) { return a < b || a != a ? a : b; }\n",
        (),
    ),
    "beats_max": (
        "template <typename T>\n"
        "__device__ bool beats_max(T a, T b) { return a > b || (a != a && b == b); }\n",
        (),
    ),
    "beats_min": (
        "template <typename T>\n"
        "__device__ bool beats_min(T a, T b) { return a < b || (a != a && b == b); }\n",
        (),
    ),
    "relu": ("template <typename T>\n__device__ T relu(T x) { return x < T(0) ? T(0) : x; }\n", ()),
    "magnitude": (
        "template <typename T>\n"
        "__device__ T magnitude(T x) { return x < T(0) ? -x : x == T(0) ? T(0) : x; }\n",
        (),
    ),
    "sign": ("template <typename T>\n__device__ T sign(T x) { return T((x > T(0)) - (x < T(0))); }\n", ()),
    "sigmoid": (
        "__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }\n"
        "__device__ double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }\n",
        (),
    ),
    "silu": (
        "__device__ float silu(float x) { return x / (1.0f + expf(-x)); }\n"
        "__device__ double silu(double x) { return x / (1.0 + exp(-x)); }\n",
        (),
    ),
    "gelu": (
        "__device__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }\n"
        "__device__ double gelu(double x) { return 0.5 * x * (1.0 + erf(x * 0.70710678118654752)); }\n",
        (),
    ),
    "gelu_tanh": (
        "__device__ float gelu_tanh(float x) {\n"
        "    return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));\n"
        "}\n"
        "__device__ double gelu_tanh(double x) {\n"
        "    return 0.5 * x * (1.0 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));\n"
        "}\n",
        (),
    ),
    "floor_divide": (
        "template <typename T>\n"
        "__device__ T floor_divide(T a, T b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }\n",
        (),
    ),
    "remainder_like_divisor": (
        "// The result has the divisor's sign, as in Python.\n"
        "__device__ float remainder_like_divisor(float a, float b) {\n"
        "    const float rest = fmodf(a, b);\n"
        "    return rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;\n"
        "}\n"
        "__device__ double remainder_like_divisor(double a, double b) {\n"
        "    const double rest = fmod(a, b);\n"
        "    return rest != 0.0 && (rest < 0.0) != (b < 0.0) ? rest + b : rest;\n"
        "}\n"
        "__device__ long long remainder_like_divisor(long long a, long long b) {\n"
        "    const long long rest = a % b;\n"
        "    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;\n"
        "}\n"
        "__device__ int remainder_like_divisor(int a, int b) {\n"
        "    const int rest = a % b;\n"
        "    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;\n"
        "}\n",
        (),
    ),
}
for _name, _combine in _COMBINE.items():
    _calls = ("larger",) if _name == "max" else ("smaller",) if _name == "min" else ()
    HELPERS[f"warp_{_name}"] = (_WARP.format(name=_name, combine=_combine), _calls)
    HELPERS[f"block_{_name}"] = (_BLOCK.format(name=_name), (f"warp_{_name}",))
for _name in ("argmax", "argmin"):
    _beats = "beats_" + _name.removeprefix("arg")
    HELPERS[f"warp_{_name}"] = (_WARP_ARG.format(name=_name, beats=_beats), (_beats,))
    HELPERS[f"block_{_name}"] = (_BLOCK_ARG.format(name=_name), (f"warp_{_name}",))


def sources(names: Iterable[str]) -> list[str]:
    """The helpers and those they call, each once, callees first."""
    done: dict[str, str] = {}

    def add(name: str) -> None:
        if name not in done:
            source, calls = HELPERS[name]
            for call in calls:
                add(call)
            done[name] = source

    for name in sorted(names):
        add(name)
    return list(done.values())
