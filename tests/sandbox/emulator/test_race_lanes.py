"""Races between some lanes at any places, in global and in shared memory: looked for eight lanes at a time.

Each of two warps accesses places from a table, with the lanes of a mask. They race when nothing orders them,
they share an element and one of them writes; so do lanes of one warp that write to one place.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt
import pytest
from emulated import Machine, Out, Prepared, compile_cuda

SOURCE = r"""
template <class T> __device__ void access(T *x, int *out, int place, int writes) {
  T value = {};
  *(char *)&value = threadIdx.x + 1;
  if (writes) x[place] = value;
  else out[blockIdx.x * blockDim.x + threadIdx.x] = *(char *)&x[place];
}
// The warps of two blocks, or two of one block.
template <class T>
__device__ void two(T *x, int *out, const int *places, unsigned mask, int writes, int ordered) {
  int who = gridDim.x > 1 ? blockIdx.x : threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int turn = 0; turn < 2; ++turn) {
    if (who == turn && mask >> lane & 1) access(x, out, places[who * 32 + lane], writes >> who & 1);
    if (ordered) __syncthreads();
  }
}
template <class T>
__device__ void two_shared(int *out, const int *places, unsigned mask, int writes, int ordered) {
  __shared__ T x[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) x[i] = T();
  __syncthreads();
  two(x, out, places, mask, writes, ordered);
}
#define PLACES const int *places, unsigned mask, int writes, int ordered
#define KERNELS(NAME, T)                                                \
  __global__ void global_##NAME(T *x, int *out, PLACES) {               \
    two(x, out, places, mask, writes, ordered);                         \
  }                                                                     \
  __global__ void shared_##NAME(T *, int *out, PLACES) {                \
    two_shared<T>(out, places, mask, writes, ordered);                  \
  }
extern "C" {
KERNELS(1, char) KERNELS(2, short) KERNELS(4, int) KERNELS(8, double) KERNELS(16, float4)
__global__ void sums(unsigned *x, const int *places) { atomicAdd(&x[places[threadIdx.x % 32]], 1u); }
}
"""
ELEMENTS = 256
MASKS = (0xFFFFFFFF, 0x55555555, 0x0000FFF0, 0x80000001)
Table = npt.NDArray[np.int32]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, jail: None) -> Machine:
    return Machine(compile_cuda(SOURCE, tmp_path_factory.mktemp("lanes")))


def tables(size: int) -> dict[str, Table]:
    """Places of two warps, each in a word of its own: all apart, and with one place that both use."""
    apart = np.random.default_rng(size).permutation(64).astype("i4") * max(4 // size, 1)
    meeting = apart.copy()
    meeting[63] = meeting[0]  # the first lane of one, the last of the other
    return {"apart": apart, "meeting": meeting}


def prepare(
    machine: Machine, kernel: str, places: Table, mask: int, writes: int, *, blocks: int, ordered: bool
) -> Prepared:
    size = int(kernel.rsplit("_")[-1])
    return machine.prepare(
        kernel,
        blocks,
        64 // blocks,
        np.zeros(ELEMENTS * size, "u1"),
        Out(64, "int32"),
        places,
        np.uint32(mask),
        writes,
        int(ordered),
    )


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("space", ["global", "shared"])
def test_warps_race_where_they_meet(machine: Machine, space: str, size: int) -> None:
    """A race exactly where a place is shared, a warp writes, both lanes take part and no barrier orders."""
    fine, racing = [], []
    for (name, places), mask, writes in product(tables(size).items(), MASKS, range(4)):
        both = name == "meeting" and mask & 0x80000001 == 0x80000001
        for blocks, ordered in ((1, False), (1, True), (2, False)):
            if space == "global" or blocks == 1:
                asked = prepare(
                    machine, f"{space}_{size}", places, mask, writes, blocks=blocks, ordered=ordered
                )
                (racing if both and writes and not ordered else fine).append(asked)
    runs = machine.run_all(fine, threads=1)
    assert len(runs) == len(fine), runs[-1].result
    for run in runs:
        assert run.result.status == "ok", run.result
    for asked in racing:
        assert machine.run_all([asked], threads=1)[0].fault.kind == "race", asked


@pytest.mark.parametrize("space", ["global", "shared"])
def test_lanes_of_one_warp_that_write_to_one_place(machine: Machine, space: str) -> None:
    for first, second in ((0, 1), (3, 29), (8, 16)):
        places = np.arange(64, dtype="i4") * 3
        places[second] = places[first]
        for mask in (0xFFFFFFFF, 0x7FFFFFFF):
            asked = prepare(machine, f"{space}_4", places, mask, 1, blocks=1, ordered=True)
            fault = machine.run_all([asked], threads=1)[0].fault
            assert fault.kind == "race", (first, second)


def test_atomic_operations_at_the_same_places_do_not_race(machine: Machine) -> None:
    places = np.repeat(np.arange(8, dtype="i4") * 5, 4)
    run = machine.run("sums", 4, 64, np.zeros(64, "u4"), places, threads=2)
    assert run.result.status == "ok", run.result
    assert run.arrays["a0"][::5][:8].tolist() == [32] * 8
