"""Races in global memory between full warps at regular places: looked for by the window, not by the lane.

Two accesses, each by a warp of its own, race when nothing orders them, they share an element and one of them
writes. What they share is computed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from emulated import Machine, Out, Prepared, compile_cuda

SOURCE = r"""
struct Places { int low, high, step, flip, writes; };   // of each half of the warp, in elements

template <class T> __device__ void access(T *x, T *out, Places p) {
  int thread = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  int place = (lane < 16 ? p.low : p.high) + (lane % 16 ^ p.flip) * p.step;
  T value = {};
  *(int *)&value = thread;
  if (p.writes) x[place] = value;
  else out[thread] = x[place];
}
// The warps of two blocks, or two of one block.
template <class T> __device__ void two(T *x, T *out, Places a, Places b, int ordered) {
  int who = gridDim.x > 1 ? blockIdx.x : threadIdx.x / 32;
  if (who == 0) access(x, out, a);
  if (ordered) __syncthreads();
  if (who == 1) access(x, out, b);
}
extern "C" {
__global__ void bytes4(float *x, float *out, Places a, Places b, int sync) { two(x, out, a, b, sync); }
__global__ void bytes8(double *x, double *out, Places a, Places b, int sync) { two(x, out, a, b, sync); }
__global__ void bytes16(float4 *x, float4 *out, Places a, Places b, int sync) { two(x, out, a, b, sync); }
// All read what others read, several times; the last thread then writes one element.
__global__ void crowd(float *x, float *y, int place) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 64; ++k) sum += x[k] * x[(threadIdx.x + k) % 32 + 64];
  y[i] = sum + x[i] + x[i + 1] + x[i + 2];
  if (i == gridDim.x * blockDim.x - 1) x[place] = 1;
}
}
"""
ELEMENTS = 128


@dataclass(frozen=True)
class Places:
    low: int
    high: int
    step: int = 1
    flip: int = 0

    def elements(self) -> set[int]:
        return {start + (i ^ self.flip) * self.step for start in (self.low, self.high) for i in range(16)}

    def argument(self, writes: int) -> np.void:
        fields = np.array([self.low, self.high, self.step, self.flip, writes], "i4")
        return np.void(fields.tobytes())


PATTERNS = (
    *(Places(0, 16), Places(31, 47), Places(96, 40), Places(64, 80)),
    *(Places(32, 48, flip=5), Places(31, 31, 0), Places(3, 47, 0)),
)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(compile_cuda(SOURCE, tmp_path_factory.mktemp("race_windows")))


@pytest.mark.usefixtures("jail")
@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize("grid", [1, 2])
def test_places_that_overlap_race(machine: Machine, size: int, grid: int) -> None:
    x = np.ones(ELEMENTS * size // 4, "f4")
    prepared: list[Prepared] = []
    expected = []
    for ordered, (first, second) in product((0, 1), ((0, 0), (0, 1), (1, 0), (1, 1))):
        for a, b in product(PATTERNS, PATTERNS):
            if (first and a.step == 0) or (second and b.step == 0):
                continue  # its own lanes would race
            arguments = (x, x, a.argument(first), b.argument(second), ordered)
            prepared.append(machine.prepare(f"bytes{size}", grid, 64 // grid, *arguments, keep_going=True))
            races = (first or second) and a.elements() & b.elements() and (grid > 1 or not ordered)
            expected.append(["race"] if races else [])
    runs = machine.run_all(prepared, threads=1)
    found = [[finding.kind for finding in run.result.findings] for run in runs]
    assert found == expected


@pytest.mark.usefixtures("jail")
def test_a_late_write_meets_every_reader(machine: Machine) -> None:
    """Readers of several blocks, of several warps, of one warp; at last none but the writer itself."""
    x, last = np.ones(514, "f4"), 511
    places = (0, 31, 63, 64, 95, 130, 257, 383, 384, 479, last, 512, 513)
    runs = machine.run_all(
        [machine.prepare("crowd", 4, 128, x, Out(512), place, keep_going=True) for place in places], threads=1
    )
    found = {
        place
        for place, run in zip(places, runs, strict=True)
        if [finding.kind for finding in run.result.findings] == ["race"]
    }
    assert found == set(places) - {513}
