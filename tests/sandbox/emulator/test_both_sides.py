"""The same functions compiled by nvcc and emulated, and compiled by g++ and run in a jail.

Integers of all widths, 128-bit arithmetic, floats, switches, loops left in every way, local arrays, structs,
calls; optimised and not.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from emulated import Machine, Out
from on_the_host import run_on_the_host

from sandbox import toolchain

FUNCTIONS = (Path(__file__).parent / "both_sides.h").read_text()
NAMES = re.findall(r"^BOTH\((\w+),", FUNCTIONS, re.MULTILINE)
COUNT = 2048
DEVICE = """
#define INLINE __device__ static inline
#define CALLED __device__ static __noinline__
#define ONES(x) __popcll(x)
#define ZEROS(x) __clzll(x)
#define BOTH(name, expression) \\
  extern "C" __global__ void k_##name(const u64 *as, const u64 *bs, const u64 *cs, u64 *out) { \\
    int i = blockIdx.x * blockDim.x + threadIdx.x; \\
    u64 a = as[i], b = bs[i], c = cs[i]; \\
    out[i] = (expression); \\
  }
"""
HOST = """
#define INLINE static inline
#define CALLED __attribute__((noinline)) static
#define ONES(x) __builtin_popcountll(x)
#define ZEROS(x) ((x) ? __builtin_clzll(x) : 64)
#define BOTH(name, expression) \\
  extern "C" void k_##name(int n, const u64 *as, const u64 *bs, const u64 *cs, u64 *out) { \\
    for (int i = 0; i < n; i++) { \\
      u64 a = as[i], b = bs[i], c = cs[i]; \\
      out[i] = (expression); \\
    } \\
  }
"""
FLOATS = [
    0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-45,
    -1e-45,
    3.4028235e38,
    1.1754944e-38,
    0.5,
    -0.5,
    2.5,
    2.0**31,
]
INTEGERS = [
    (1 << 64) - 1,
    1 << 63,
    1 << 31,
    1 << 32,
    (1 << 31) - 1,
    (1 << 32) - 1,
    0x80,
    0x7F,
    0x8000,
    0x7FFF,
]


def values(seed: int) -> np.ndarray:
    """64 bits each: any, small integers, floats and doubles in their low and in all bits, and corners."""
    dice = np.random.default_rng(seed)
    floats = dice.standard_normal(COUNT) * 10.0 ** dice.integers(-5, 9, COUNT)
    corners = np.array(FLOATS, np.float32).view(np.uint32).astype(np.uint64)
    kinds = [
        dice.integers(0, 1 << 64, COUNT, dtype=np.uint64),
        dice.integers(0, 200, COUNT, dtype=np.uint64),
        floats.astype(np.float32).view(np.uint32).astype(np.uint64),
        floats.view(np.uint64),
        dice.choice(corners, COUNT),
        dice.choice(np.array(FLOATS).view(np.uint64), COUNT),
        dice.choice(np.array(INTEGERS, np.uint64), COUNT),
    ]
    return np.choose(dice.integers(0, len(kinds), COUNT), kinds)


INPUTS = [values(seed) for seed in (1, 2, 3)]


MAIN = """
#include <cstdio>
int main() {{
  static u64 in[3][{count}], out[{count}];
  if (fread(in, 1, sizeof in, stdin) != sizeof in) return 1;
  void (*all[])(int, const u64 *, const u64 *, const u64 *, u64 *) = {{ {names} }};
  for (auto one : all) {{
    one({count}, in[0], in[1], in[2], out);
    fwrite(out, 1, sizeof out, stdout);
  }}
}}
"""


@pytest.fixture(scope="module")
def wanted(jail: None) -> dict[str, np.ndarray]:
    main = MAIN.format(count=COUNT, names=", ".join(f"k_{name}" for name in NAMES))
    output = run_on_the_host(HOST + FUNCTIONS + main, b"".join(array.tobytes() for array in INPUTS))
    return dict(zip(NAMES, np.frombuffer(output, np.uint64).reshape(-1, COUNT), strict=True))


@pytest.mark.parametrize("flag", ["-lineinfo", "-G"])
def test_both_sides_agree(flag: str, wanted: dict[str, np.ndarray], tmp_path: Path) -> None:
    (tmp_path / "device.cu").write_text(DEVICE + FUNCTIONS)
    nvcc = str(toolchain.find_toolkit().nvcc)
    command = [nvcc, "-arch=sm_90", "-fmad=false", flag, "-ptx", "device.cu", "-o", "device.ptx"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    machine = Machine((tmp_path / "device.ptx").read_text())
    prepared = [
        machine.prepare(f"k_{name}", COUNT // 128, 128, *INPUTS, Out(COUNT, "uint64"), count=False)
        for name in NAMES
    ]
    runs = machine.run_all(prepared, seconds=60)
    assert [run.result.status for run in runs] == ["ok"] * len(NAMES)
    for name, run in zip(NAMES, runs, strict=True):
        wrong = np.flatnonzero(run.arrays["a3"] != wanted[name])
        first = [hex(int(array[i])) for i in wrong[:1] for array in (*INPUTS, run.arrays["a3"], wanted[name])]
        assert not len(wrong), f"{name}: {len(wrong)} differ, first (a, b, c, got, wanted): {first}"
