"""Loads and stores of every width at regular and irregular addresses, with checks and without."""

from __future__ import annotations

import re

import numpy as np
import pytest
from emulated import Machine, compile_cuda

from sandbox.emulator.client import Mode

N = 128  # threads of the block, and elements
TYPES = {"char": ("u1", 1), "short": ("u2", 1), "float": ("u4", 1), "double": ("u8", 1)} | {
    "float2": ("u4", 2),
    "float4": ("u4", 4),
    "double2": ("u8", 2),
    "uchar4": ("u1", 4),
    "short2": ("u2", 2),
}
_KERNELS = r"""
// Every thread below `threads` moves an element in three places, in the middle one only if it is odd.
#define ARGUMENTS_T const int *from, const int *to, const T *x, T *y, int threads, int apart
extern "C" __global__ void through_global_T(ARGUMENTS_T) {
  int t = threadIdx.x;
  if (t >= threads) return;
  const T *source = x + from[t];
  T *target = y + to[t];
  T first = source[0], last = source[2 * apart];
  target[0] = first;
  if (t & 1) target[apart] = source[apart];
  target[2 * apart] = last;
}
extern "C" __global__ void through_shared_T(ARGUMENTS_T) {
  extern __shared__ double memory[];
  T *near = (T *)memory;
  int t = threadIdx.x;
  for (int i = t; i < 3 * apart; i += blockDim.x) near[i] = x[i];
  __syncthreads();
  if (t >= threads) return;
  const T *source = near + from[t];
  T *target = y + to[t];
  target[0] = source[0];
  target[apart] = source[256];
  target[2 * apart] = source[512];
}
extern "C" __global__ void into_shared_T(ARGUMENTS_T) {
  extern __shared__ double memory[];
  T *near = (T *)memory;
  int t = threadIdx.x;
  for (int i = t; i < 3 * apart; i += blockDim.x) near[i] = y[i];
  __syncthreads();
  if (t < threads) {
    near[to[t]] = x[from[t]];
    near[to[t] + 256] = x[from[t] + 256];
    near[to[t] + 512] = x[from[t] + 512];
  }
  __syncthreads();
  for (int i = t; i < 3 * apart; i += blockDim.x) y[i] = near[i];
}
"""
SOURCE = "#include <cuda_runtime.h>\n" + "".join(re.sub(r"\bT\b|(?<=_)T\b", name, _KERNELS) for name in TYPES)
APART = 256

_LANES = np.arange(N)
_SHUFFLED = np.random.default_rng(5).permutation(N)
READS = {
    "row": _LANES,
    "shifted row": _LANES + 3,
    "uniform": np.full(N, 7),
    "a place a warp": _LANES // 32,
    "two places a warp": _LANES // 16 * 5,
    "rows of eight": _LANES // 8 * 40 % 100 + _LANES % 8,
    "rows of sixteen": _LANES // 16 * 24 + _LANES % 16,
    "backwards": N - 1 - _LANES,
    "swapped in groups": _LANES ^ 5,
    "strided": _LANES * 33 % N,
    "shuffled": _SHUFFLED,
    "one stray lane": np.where(_LANES % 32 == 17, 0, _LANES),
}
WRITES = {
    "row": _LANES,
    "shifted row": _LANES + 5,
    "backwards": N - 1 - _LANES,
    "swapped in groups": _LANES ^ 3,
    "rows of eight": _LANES // 8 * 9 + _LANES % 8,
    "shuffled": _SHUFFLED,
}


@pytest.fixture(scope="module", params=["checked", "plain"])
def machine(jail: None, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Machine:
    mode: Mode = request.param
    return Machine(compile_cuda(SOURCE, tmp_path_factory.mktemp("patterns")), mode=mode)


@pytest.mark.parametrize("name", TYPES)
def test_every_pattern(machine: Machine, name: str) -> None:
    kind, count = TYPES[name]
    items = 3 * APART
    x = np.random.default_rng(1).integers(0, 250, (items, count)).astype(kind)
    prepared, expected = [], []
    for read, source in READS.items():
        for write, target in WRITES.items():
            for kernel in ("through_global", "through_shared", "into_shared"):
                threads = N if read != "strided" else 75
                want = np.zeros_like(x)
                at = np.arange(threads)
                for part in range(3):
                    some = at[at % 2 == 1] if part == 1 and kernel == "through_global" else at
                    want[target[some] + part * APART] = x[source[some] + part * APART]
                shared = items * count * np.dtype(kind).itemsize
                prepared.append(
                    machine.prepare(
                        f"{kernel}_{name}",
                        1,
                        N,
                        source.astype("i4"),
                        target.astype("i4"),
                        x,
                        np.zeros_like(x),
                        threads,
                        APART,
                        shared=shared,
                        count=False,
                    )
                )
                expected.append((kernel, read, write, want))
    runs = machine.run_all(prepared, threads=1)
    assert len(runs) == len(expected)
    for run, (kernel, read, write, want) in zip(runs, expected, strict=True):
        assert run.result.status == "ok", (kernel, read, write, run.result)
        assert (run.arrays["a3"].reshape(want.shape) == want).all(), (kernel, read, write)
