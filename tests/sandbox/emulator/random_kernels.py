"""Random small kernels in a dialect that means the same to nvcc and to g++.

A kernel is a few phases between barriers. In a phase a thread computes on variables of its own, and either
writes its own element of a shared array or reads any element, so that nothing races. Everything has a defined
value: shift counts are masked, divisors are not zero, floats become integers only where they fit.
"""

from __future__ import annotations

import random
from collections.abc import Callable

VARIABLES = {
    "u32": ("a", "b", "c"),
    "i32": ("i", "j"),
    "u64": ("w", "z"),
    "float": ("f", "g"),
    "double": ("x", "y"),
}
THREADS = 64


class Writer:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.loops = 0

    def kernel(self, name: str) -> str:
        """`STEP` functions of one thread, and KERNEL, which runs them with a barrier behind each."""
        count = self.dice.randint(2, 3)
        phases = [self._phase(f"{name}_{index}", index % 2 == 1) for index in range(count)]
        calls = " ".join(f"PHASE({name}_{index})" for index in range(count))
        return "\n".join([*phases, f"KERNEL({name}, {calls})"])

    def _phase(self, name: str, reads: bool) -> str:
        body = [self.statement(2, reads) for _ in range(self.dice.randint(2, 3))]
        if not reads:
            body.append(f"shared[tid] = {self.integer(3, 'u32', False)};")
        return f"STEP void {name}(State &t, u32 *shared, u32 tid) {{\n  {chr(10).join(body)}\n}}"

    def statement(self, depth: int, reads: bool) -> str:
        choice = self.dice.random()
        if depth and choice < 0.2:
            other = f" else {{ {self.statement(depth - 1, reads)} }}" if self.dice.random() < 0.6 else ""
            inner = self.statement(depth - 1, reads)
            return f"if ({self.condition(2, reads)}) {{ {inner} {self.statement(0, reads)} }}{other}"
        if depth and choice < 0.35:
            self.loops += 1
            k = f"k{self.loops}"
            leave = f"if ({self.condition(1, reads)}) {self.dice.choice(['break', 'continue'])};"
            inner = " ".join(self.statement(depth - 1, reads) for _ in range(2))
            return f"for (u32 {k} = 0; {k} < (t.a & 7) + 1; {k}++) {{ t.b += {k}; {leave} {inner} }}"
        if depth and choice < 0.42:
            cases = " ".join(
                f"case {n}: {self.statement(0, reads)}{'' if n == 1 else ' break;'}" for n in range(4)
            )
            return f"switch (t.c & 7) {{ {cases} default: {self.statement(0, reads)} }}"
        kind = self.dice.choice(list(VARIABLES))
        target = self.dice.choice(VARIABLES[kind])
        value = self.real(3, kind, reads) if kind in ("float", "double") else self.integer(3, kind, reads)
        return f"t.{target} = ({kind})({value});"

    def condition(self, depth: int, reads: bool) -> str:
        compare = self.dice.choice(["<", "<=", ">", ">=", "==", "!="])
        if self.dice.random() < 0.35:
            kind = self.dice.choice(["float", "double"])
            one = f"{self.real(depth, kind, reads)} {compare} {self.real(depth, kind, reads)}"
        else:
            kind = self.dice.choice(["u32", "i32", "u64"])
            first, second = (f"({kind})({self.integer(depth, kind, reads)})" for _ in range(2))
            one = f"{first} {compare} {second}"
        if depth and self.dice.random() < 0.3:
            return f"({one}) {self.dice.choice(['&&', '||'])} ({self.condition(depth - 1, reads)})"
        return one

    def integer(self, depth: int, kind: str, reads: bool) -> str:
        if depth == 0 or self.dice.random() < 0.12:
            return self._leaf(kind, reads)
        a = f"({kind})({self.integer(depth - 1, kind, reads)})"
        b = f"({kind})({self.integer(depth - 1, kind, reads)})"
        mask = 63 if kind == "u64" else 31
        forms: list[Callable[[], str]] = [
            lambda: f"{a} {self.dice.choice(['+', '-', '*', '&', '|', '^'])} {b}",
            lambda: f"{a} {self.dice.choice(['+', '-', '*', '^'])} {b}",
            lambda: f"{a} >> ((u32){b} & {mask})",
            lambda: f"({kind})((u64){a} << ((u32){b} & {mask}))",
            lambda: f"~{a}",
            lambda: f"({kind})(u8){a} + ({kind})(i16){b}",
            lambda: f"({a} >> 1) / (({kind})((u32){b} & 1023) + 1)",
            lambda: f"({a} >> 1) % (({kind})((u32){b} & 0xffff) + 3)",
            lambda: f"({self.condition(1, reads)}) ? {a} : {b}",
            lambda: f"{a} < {b} ? {a} : {b}",
            lambda: f"({kind})ONES((u64){a}) + ({kind})ZEROS((u64){b})",
            lambda: f"({kind})(((u64)(u32){a} * (u64)(u32){b}) >> 32)",
            lambda: f"({kind})whole({self.real(depth - 1, 'double', reads)})",
        ]
        return f"({self.dice.choice(forms)()})"

    def _leaf(self, kind: str, reads: bool) -> str:
        choice = self.dice.random()
        if choice < 0.2:
            return str(
                self.dice.choice([0, 1, 2, 3, 7, 31, 255, 65535, 2147483647, self.dice.getrandbits(30)])
            )
        if choice < 0.3:
            return "tid"
        if reads and choice < 0.55:
            return f"shared[(u32)t.{self.dice.choice('abc')} & {THREADS - 1}]"
        names = VARIABLES[self.dice.choice(["u32", "i32", "u64", kind])]
        return f"t.{self.dice.choice(names)}"

    def _kind(self) -> str:
        return self.dice.choice(["i32", "u32", "u64"])

    def real(self, depth: int, kind: str, reads: bool) -> str:
        if depth == 0 or self.dice.random() < 0.15:
            if self.dice.random() < 0.25:
                constants = ["0.5", "-2.0", "1e-3", "3.25", "1e10", "0.0", "-0.0", "1e-40"]
                return f"({kind}){self.dice.choice(constants)}"
            return f"({kind})t.{self.dice.choice([*VARIABLES['float'], *VARIABLES['double']])}"
        a, b = self.real(depth - 1, kind, reads), self.real(depth - 1, kind, reads)
        forms: list[Callable[[], str]] = [
            lambda: f"{a} {self.dice.choice(['+', '-', '*', '/'])} {b}",
            lambda: f"{a} {self.dice.choice(['+', '-', '*'])} {b}",
            lambda: f"-{a}",
            lambda: f"FABS({a})",
            lambda: f"({kind})sqrt(({kind})FABS({a}))" if kind == "double" else f"sqrtf(FABS({a}))",
            lambda: f"({self.condition(1, reads)}) ? {a} : {b}",
            lambda: f"({kind})({self._kind()})({self.integer(depth - 1, 'u32', reads)})",
            lambda: f"({kind})(float)({a})",
        ]
        return f"({self.dice.choice(forms)()})"


PRELUDE = """
#include <cmath>
#include <cstdio>
#include <cstring>
typedef unsigned long long u64;
typedef unsigned u32;
typedef int i32;
typedef unsigned char u8;
typedef short i16;
struct State { u32 a, b, c; i32 i, j; u64 w, z; float f, g; double x, y; };
#define FABS(v) ((v) < 0 ? -(v) : (v))
STEP i32 whole(double v) { return v > -2e9 && v < 2e9 ? (i32)v : 7; }
STEP u64 bits(double v) { u64 n; memcpy(&n, &v, 8); return v != v ? 1 : n; }
STEP State begin(const u64 *in) {
  State t;
  t.a = (u32)in[0]; t.b = (u32)in[1]; t.c = (u32)(in[0] >> 32); t.i = (i32)in[2]; t.j = (i32)(in[1] >> 32);
  t.w = in[2]; t.z = in[3]; t.f = (float)(i32)in[3] * 1e-3f; t.g = (float)(u32)in[0] * 1e-9f;
  t.x = (double)(i32)in[1] * 1e-6; t.y = (double)in[2];
  return t;
}
STEP void end(const State &t, u64 *out) {
  u64 all[8] = {t.a | (u64)t.b << 32, t.c | (u64)(u32)t.i << 32, (u32)t.j, t.w, t.z,
                bits(t.f) ^ bits(t.g) * 3, bits(t.x), bits(t.y)};
  for (int n = 0; n < 8; n++) out[n] = all[n];
}
"""
DEVICE = (
    """
#define STEP __device__ __forceinline__
#define ONES(v) __popcll(v)
#define ZEROS(v) __clzll(v)
"""
    + PRELUDE
    + """
#define PHASE(name) name(t, shared, tid); __syncthreads();
#define KERNEL(name, calls) \\
  extern "C" __global__ void name(const u64 *in, u64 *out) { \\
    __shared__ u32 shared[64]; \\
    u32 tid = threadIdx.x; \\
    u64 thread = blockIdx.x * blockDim.x + tid; \\
    State t = begin(in + thread * 4); \\
    calls \\
    end(t, out + thread * 8); \\
  }
"""
)
HOST = (
    """
#define STEP static inline
#define ONES(v) __builtin_popcountll(v)
#define ZEROS(v) ((v) ? __builtin_clzll(v) : 64)
"""
    + PRELUDE
    + """
#define PHASE(name) for (u32 tid = 0; tid < 64; tid++) name(threads[tid], shared, tid);
#define KERNEL(name, calls) \\
  static void name(const u64 *in, u64 *out) { \\
    u32 shared[64]; \\
    State threads[64]; \\
    for (u32 tid = 0; tid < 64; tid++) threads[tid] = begin(in + tid * 4); \\
    calls \\
    for (u32 tid = 0; tid < 64; tid++) end(threads[tid], out + tid * 8); \\
  }
"""
)
MAIN = """
int main() {{
  static u64 in[{blocks} * 64 * 4], out[{blocks} * 64 * 8];
  if (fread(in, 1, sizeof in, stdin) != sizeof in) return 1;
  void (*kernels[])(const u64 *, u64 *) = {{ {names} }};
  for (auto kernel : kernels) {{
    for (int block = 0; block < {blocks}; block++) kernel(in + block * 64 * 4, out + block * 64 * 8);
    fwrite(out, 1, sizeof out, stdout);
  }}
}}
"""
