"""Barriers in all their forms, groups of several warps, seeded orders, and clocks."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda, line_of

SOURCE = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
#define BARRIER(text) asm volatile(text ::: "memory")
extern "C" {
__global__ void pipeline(int rounds, int *out) {   // warps 0, 1 produce for warps 2, 3
  __shared__ int box[2][64];
  int lane = threadIdx.x % 64;
  if (threadIdx.x < 64) {
    for (int i = 0; i < rounds; i++) {
      int full = 1 + i % 2, empty = 3 + i % 2;
      if (i >= 2) asm volatile("bar.sync %0, %1;" ::"r"(empty), "r"(128) : "memory");
      box[i % 2][lane] = i * 100 + lane;
      asm volatile("bar.arrive %0, %1;" ::"r"(full), "r"(128) : "memory");
    }
  } else {
    for (int i = 0; i < rounds; i++) {
      int full = 1 + i % 2, empty = 3 + i % 2;
      asm volatile("bar.sync %0, %1;" ::"r"(full), "r"(128) : "memory");
      out[i * 64 + lane] = box[i % 2][63 - lane];
      if (i + 2 < rounds) asm volatile("bar.arrive %0, %1;" ::"r"(empty), "r"(128) : "memory");
    }
  }
}
__global__ void pairs(int *out) {   // each pair of warps has a barrier of its own
  __shared__ int cell[4][64];
  int pair = threadIdx.x / 64, lane = threadIdx.x % 64;
  for (int i = 0; i <= pair; i++) {
    cell[pair][lane] = i + lane;
    asm volatile("barrier.sync %0, 64;" ::"r"(pair + 1) : "memory");
    out[threadIdx.x] = cell[pair][63 - lane];
    asm volatile("barrier.sync.aligned %0, 64;" ::"r"(pair + 1) : "memory");
  }
}
__global__ void under_predicate(int on, int *out) {
  __shared__ int cell[64];
  cell[threadIdx.x] = threadIdx.x;
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %0, 0; @p bar.sync 0; @!p bar.sync 1; }" ::"r"(on) : "memory");
  out[threadIdx.x] = cell[63 - threadIdx.x];
}
static __device__ __noinline__ int exchange(int *cell, int value) {
  cell[threadIdx.x] = value;
  __syncthreads();
  value = cell[63 - threadIdx.x];
  __syncthreads();
  return value;
}
__global__ void in_a_function(const int *in, int *out) {   // lanes come to the call at different times
  __shared__ int cell[64];
  int value = in[threadIdx.x];
  for (int i = 0; i < threadIdx.x % 3; i++) value = value * 3 + i;
  if (value % 2) value++;
  out[threadIdx.x] = exchange(cell, value);
}
__global__ void count_votes(const int *in, int *out) {
  int n = __syncthreads_count(in[threadIdx.x] > 0), all = __syncthreads_and(in[threadIdx.x] > -9);
  out[threadIdx.x] = n * 10 + (all != 0) * 2 + (__syncthreads_or(in[threadIdx.x] > 5) != 0);
}
__global__ void not_whole(int *out) {
  asm volatile("bar.sync 1, %0;" ::"r"(40) : "memory");  // forty
  out[threadIdx.x] = 1;
}
__global__ void disagree(int *out) {
  asm volatile("bar.sync 1, %0;" ::"r"(threadIdx.x < 32 ? 64 : 96) : "memory");  // how many
  out[threadIdx.x] = 1;
}
__global__ void order(unsigned *next, int *out) {
  if (threadIdx.x % 32 == 0) out[atomicAdd(next, 1)] = blockIdx.x * 2 + threadIdx.x / 32;
}
__global__ void clocks(long long *out, unsigned *where) {
  long long start = clock64();
  unsigned long long timer, again;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(timer));
  long long middle = clock64();
  __nanosleep(1000);
  long long end = clock64();
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(again));
  unsigned sm, count;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u32 %0, %%nsmid;" : "=r"(count));
  if (threadIdx.x == 0) {
    out[3 * blockIdx.x] = middle - start;
    out[3 * blockIdx.x + 1] = end - middle;
    out[3 * blockIdx.x + 2] = again - timer;
    where[blockIdx.x] = sm < count ? sm : 1000;
  }
}
}
"""


@pytest.fixture(scope="module")
def machine(jail: None, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(compile_cuda(SOURCE, tmp_path_factory.mktemp("barriers")))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_producers_and_consumers(machine: Machine, seed: int) -> None:
    run = machine.run("pipeline", 1, 128, 5, Out(5 * 64, "int32"), seed=seed)
    assert run.result.status == "ok", run.result
    assert run.arrays["a1"].tolist() == [i * 100 + 63 - lane for i in range(5) for lane in range(64)]


@pytest.mark.parametrize("seed", [0, 3])
def test_a_barrier_for_each_pair_of_warps(machine: Machine, seed: int) -> None:
    run = machine.run("pairs", 1, 256, Out(256, "int32"), seed=seed)
    assert run.result.status == "ok", run.result
    assert run.arrays["a0"].tolist() == [pair + 63 - lane for pair in range(4) for lane in range(64)]


def test_barriers_under_a_predicate(machine: Machine) -> None:
    for on in (0, 1):
        run = machine.run("under_predicate", 1, 64, on, Out(64, "int32"))
        assert run.result.status == "ok", run.result
        assert run.arrays["a1"].tolist() == list(range(63, -1, -1))


def test_barriers_in_functions(machine: Machine) -> None:
    given = np.arange(64, dtype="i4")
    run = machine.run("in_a_function", 1, 64, given, Out(64, "int32"))
    assert run.result.status == "ok", run.result
    values = []
    for thread in range(64):
        value = thread
        for i in range(thread % 3):
            value = value * 3 + i
        values.append(value + value % 2)
    assert run.arrays["a1"].tolist() == values[::-1]


def test_votes_over_the_block(machine: Machine) -> None:
    given = np.random.default_rng(4).integers(-8, 9, 96, dtype="i4")
    run = machine.run("count_votes", 1, 96, given, Out(96, "int32"))
    wanted = int((given > 0).sum()) * 10 + 2 * bool((given > -9).all()) + bool((given > 5).any())
    assert (run.arrays["a1"] == wanted).all()


@pytest.mark.parametrize(
    ("kernel", "mark", "says"),
    [
        ("not_whole", "// forty", "barrier 1 for 40 threads, which are not whole warps"),
        ("disagree", "// how many", "barrier 1 for 96 threads, where others wait for 64"),
    ],
)
def test_wrong_counts(machine: Machine, kernel: str, mark: str, says: str) -> None:
    fault = machine.run(kernel, 1, 96, Out(96, "int32")).fault
    assert (fault.kind, fault.line, fault.message) == ("barrier", line_of(SOURCE, mark), says)


def orders(machine: Machine, seed: int) -> list[int]:
    run = machine.run("order", 20, 64, np.zeros(1, "i4"), Out(40, "int32"), threads=1, seed=seed)
    values: list[int] = run.arrays["a1"].tolist()
    return values


def test_seeds_decide_the_order(machine: Machine) -> None:
    assert orders(machine, 0) == list(range(40))
    shuffled = [orders(machine, seed) for seed in (1, 2, 1)]
    assert all(sorted(order) == list(range(40)) for order in shuffled)
    assert shuffled[0] == shuffled[2] != shuffled[1]
    assert any(
        order.index(2 * block) > order.index(2 * block + 1) for order in shuffled for block in range(20)
    )


def test_clocks_go_on_and_blocks_are_spread(machine: Machine) -> None:
    run = machine.run("clocks", 6, 32, Out(18, "int64"), Out(6, "uint32"))
    times = run.arrays["a0"].reshape(6, 3)
    assert (times[:, 0] > 0).all()
    assert (times[:, 0] < 1000).all()
    assert (times[:, 1] >= 1000).all()
    assert (times[:, 2] > 0).all()
    assert run.arrays["a1"].tolist() == list(range(6))
