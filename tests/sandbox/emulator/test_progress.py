"""Forward progress: threads that wait for others get what they wait for, up to whole grids; and what never
comes is called a deadlock, while what only takes long is not."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda, line_of

SOURCE = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" {
__global__ void spin_lock(int *lock, int *sum) {   // every thread on its own, lanes of one warp included
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *(volatile int *)sum += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
__global__ void lock_then_work(int *lock, int *sum) {   // the holder's way is long and in another place
  while (atomicCAS(lock, 0, 1) != 0) { }
  for (int i = 0; i < 20; i++) *(volatile int *)sum += (i % 3 == 0);
  __threadfence();
  atomicExch(lock, 0);
}
__global__ void ticket_lock(unsigned *next, volatile unsigned *serving, int *order) {
  if (threadIdx.x % 32 == 0) {
    unsigned mine = atomicAdd(next, 1);
    while (*serving != mine) { }
    order[mine] = blockIdx.x;
    __threadfence();
    *serving = mine + 1;
  }
}
__global__ void later_block(volatile int *flag, int *out) {   // waits for the block after it
  if (threadIdx.x == 0) {
    if (blockIdx.x + 1 < gridDim.x) while (flag[blockIdx.x + 1] == 0) { }
    out[blockIdx.x] = blockIdx.x;
    __threadfence();
    flag[blockIdx.x] = 1;
  }
}
__global__ void blocks_meet(unsigned *arrived, int rounds, int *out) {   // without a cooperative launch
  for (int round = 1; round <= rounds; round++) {
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(arrived, 1);
      while (*(volatile unsigned *)arrived < round * gridDim.x) { }
    }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] += *(volatile unsigned *)arrived >= round * gridDim.x;
  }
}
__global__ void back_off(volatile int *flag, int *out, int sleeps) {   // block 0 waits for the last one
  if (blockIdx.x == 0) {
    int turns = 0;
    while (flag[0] == 0) {
      turns++;
      if (sleeps) __nanosleep(100);
    }
    out[0] = turns > 0;
  } else if (blockIdx.x == gridDim.x - 1) {
    flag[0] = 1;
  }
}
__global__ void grid_sum(const int *in, int *partial, int *out, int rounds) {
  auto grid = cg::this_grid();
  for (int round = 0; round < rounds; round++) {
    partial[grid.thread_rank()] = in[grid.thread_rank()] + round;
    grid.sync();
    if (grid.thread_rank() < 32) {
      int sum = 0;
      for (unsigned i = threadIdx.x; i < grid.size(); i += 32) sum += partial[i];
      sum = cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), sum, cg::plus<int>());
      if (threadIdx.x == 0) out[round] = sum;
    }
    grid.sync();
  }
}
__global__ void look_back(const int *in, int *out, unsigned long long *state, unsigned *next) {
  __shared__ int number, before;
  if (threadIdx.x == 0) number = atomicAdd(next, 1);
  __syncthreads();
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int at = number * 32 + threadIdx.x;
  int sum = cg::inclusive_scan(warp, in[at], cg::plus<int>());
  if (threadIdx.x == 31) {
    if (number) atomicExch(&state[number], (1ull << 32) | (unsigned)sum);
    int prefix = 0;
    for (int look = number - 1; look >= 0;) {
      unsigned long long seen;
      do seen = *(volatile unsigned long long *)&state[look]; while (seen >> 32 == 0);
      prefix += (int)(unsigned)seen;
      if (seen >> 32 == 2) break;
      look--;
    }
    atomicExch(&state[number], (2ull << 32) | (unsigned)(prefix + sum));
    before = prefix;
  }
  __syncthreads();
  out[at] = before + sum;
}
__global__ void publish(ulonglong2 *cell, int n, int *torn) {   // one block writes, one reads
  if (blockIdx.x == 0) {
    for (int i = 1; i <= n; i++) {
      unsigned long long a = i, b = ~a;
      asm volatile("st.relaxed.gpu.v2.u64 [%0], {%1, %2};" ::"l"(cell), "l"(a), "l"(b) : "memory");
    }
  } else {
    unsigned long long a = 0, b = ~0ull;
    while (a < n) {
      if (a != ~b) *torn = 1;
      asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(cell) : "memory");
    }
  }
}

// Deadlocks.
__global__ void lock_twice(int *lock, int release) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) { }
    if (release) atomicExch(lock, 0);
    while (atomicCAS(lock, 0, 1) != 0) { }   // for the second time
  }
}
__global__ void lanes_wait(volatile int *flag, int set) {
  if (threadIdx.x != 7) while (flag[0] == 0) { }   // for lane 7
  else if (set) flag[0] = 1;
}
__global__ void warps_wait(volatile int *y, int set) {
  __shared__ volatile int flag[2];
  if (threadIdx.x < 2) flag[threadIdx.x] = 0;
  __syncthreads();
  int warp = threadIdx.x / 32;
  if (set && threadIdx.x == 0) flag[1] = 1;
  while (flag[warp] == 0) { }   // each for the other
  flag[1 - warp] = 1;
  if (y) y[threadIdx.x] = 1;
}
__global__ void blocks_wait(volatile int *flag, int set) {
  if (set && blockIdx.x == 0) flag[0] = 1;
  while (flag[blockIdx.x] == 0) { }   // each for the one before
  flag[(blockIdx.x + 1) % gridDim.x] = 1;
}
__global__ void barrier_and_flag(volatile int *flag, int set) {
  if (set) flag[0] = 1;
  if (threadIdx.x == 0) while (flag[0] == 0) { }   // the others are at the barrier
  __syncthreads();
  flag[0] = 1;
}
__global__ void left_out(unsigned *arrived, unsigned wanted) {
  atomicAdd(arrived, 1);
  while (*(volatile unsigned *)arrived < wanted) __nanosleep(64);   // one block too few
}
__global__ void slow_poll(volatile int *flag, int set) {
  if (set) flag[0] = 1;
  while (flag[0] == 0) for (int i = 0; i < 37; i++) asm volatile("");   // with a loop between looks
}

// What is none.
__global__ void timed_wait(volatile int *flag, long long cycles, int *out) {
  long long start = clock64(), now = start;
  while (flag[0] == 0 && (now = clock64()) - start < cycles) { }
  out[0] = now - start >= cycles;
}
__global__ void same_again(const float *x, volatile float *y, int again) {
  while (again) y[threadIdx.x] = 2 * x[threadIdx.x];
}
__global__ void long_compute(int n, unsigned *out) {
  unsigned state = threadIdx.x;
  for (int i = 0; i < n; i++) { state = state * 1664525u + 1013904223u; asm volatile(""); }
  out[threadIdx.x] = state;
}
__global__ void long_holder(volatile int *flag, int n, unsigned *out) {   // others wait while one computes
  if (blockIdx.x == 0) {
    unsigned state = 1;
    for (int i = 0; i < n; i++) { state = state * 1664525u + 1013904223u; asm volatile(""); }
    out[0] = state;
    __threadfence();
    flag[0] = 1;
  } else {
    while (flag[0] == 0) { }
    out[blockIdx.x] = out[0];
  }
}
}
"""


@pytest.fixture(scope="module")
def machine(jail: None, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(compile_cuda(SOURCE, tmp_path_factory.mktemp("progress")))


def zeros(count: int, dtype: str = "i4") -> np.ndarray:
    return np.zeros(count, dtype)


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_locks_between_lanes_warps_and_blocks(machine: Machine, threads: int) -> None:
    for kernel, each in (("spin_lock", 1), ("lock_then_work", 7)):
        run = machine.run(kernel, 4, 64, zeros(1), zeros(1), threads=threads)
        assert run.result.status == "ok", (kernel, run.result)
        assert run.arrays["a1"].tolist() == [4 * 64 * each]


def test_ticket_lock(machine: Machine, threads: int) -> None:
    run = machine.run("ticket_lock", 20, 64, zeros(1), zeros(1), Out(40, "int32"), threads=threads)
    assert sorted(run.arrays["a2"].tolist()) == sorted(list(range(20)) * 2)


@pytest.mark.parametrize("blocks", [2, 300])
def test_waiting_for_later_blocks(machine: Machine, threads: int, blocks: int) -> None:
    run = machine.run("later_block", blocks, 32, zeros(blocks), Out(blocks, "int32"), threads=threads)
    assert run.arrays["a1"].tolist() == list(range(blocks))


def test_blocks_that_meet(machine: Machine, threads: int) -> None:
    run = machine.run("blocks_meet", 100, 128, zeros(1), 3, zeros(100), threads=threads)
    assert (run.arrays["a2"] == 3).all()


@pytest.mark.parametrize("sleeps", [0, 1])
def test_waits_that_count(machine: Machine, threads: int, sleeps: int) -> None:
    run = machine.run("back_off", 10, 32, zeros(1), zeros(1), sleeps, threads=threads)
    assert run.result.status == "ok", run.result
    if threads == 1:  # another thread may have run the last block before the first one looks
        assert run.arrays["a1"].tolist() == [1]


@pytest.mark.parametrize(("blocks", "size"), [(1, 32), (7, 64), (500, 64)])
def test_grid_sync(machine: Machine, threads: int, blocks: int, size: int) -> None:
    given = np.random.default_rng(1).integers(-100, 100, blocks * size, dtype="i4")
    out = Out(4, "int32")
    run = machine.run(
        "grid_sum",
        blocks,
        size,
        given,
        Out(blocks * size, "int32"),
        out,
        4,
        cooperative=True,
        threads=threads,
    )
    assert run.result.status == "ok", run.result
    assert run.arrays["a2"].tolist() == [int(given.sum()) + round * given.size for round in range(4)]


def test_look_back_scan(machine: Machine, threads: int) -> None:
    given = np.random.default_rng(2).integers(0, 100, 32 * 60, dtype="i4")
    for seed in (0, 5):
        run = machine.run(
            *("look_back", 60, 32, given, Out(given.size, "int32"), zeros(60, "u8"), zeros(1)),
            threads=threads,
            seed=seed,
        )
        np.testing.assert_array_equal(run.arrays["a1"], np.cumsum(given))


def test_pairs_are_published_whole(machine: Machine, threads: int) -> None:
    pair = np.array([0, 2**64 - 1], "u8")
    run = machine.run("publish", 2, 1, pair, 300_000, zeros(1), threads=threads)
    assert run.result.status == "ok", run.result
    assert run.arrays["a2"].tolist() == [0]


DEADLOCKS = {
    "lock_twice": (1, 32, "// for the second time"),
    "lanes_wait": (1, 32, "// for lane 7"),
    "warps_wait": (1, 64, "// each for the other"),
    "blocks_wait": (5, 32, "// each for the one before"),
    "barrier_and_flag": (1, 96, "// the others are at the barrier"),
    "slow_poll": (1, 32, "// with a loop between looks"),
}


@pytest.mark.parametrize("kernel", DEADLOCKS)
def test_deadlocks(machine: Machine, threads: int, kernel: str) -> None:
    blocks, size, mark = DEADLOCKS[kernel]
    array = zeros(64)
    fault = machine.run(kernel, blocks, size, array, 0, threads=threads).fault
    assert (fault.kind, fault.line) == ("deadlock", line_of(SOURCE, mark)), fault
    assert fault.block == (0, 0, 0)
    if kernel != "lock_twice":  # which never ends well
        assert machine.run(kernel, blocks, size, array, 1, threads=threads).result.status == "ok"


def test_a_block_too_few(machine: Machine, threads: int) -> None:
    fault = machine.run("left_out", 10, 32, zeros(1), 321, threads=threads).fault
    assert (fault.kind, fault.line) == ("deadlock", line_of(SOURCE, "// one block too few"))
    assert machine.run("left_out", 10, 32, zeros(1), 320, threads=threads).result.status == "ok"


def test_what_only_takes_long_is_no_deadlock(machine: Machine, threads: int) -> None:
    run = machine.run("timed_wait", 1, 32, zeros(1), np.int64(3_000_000), Out(1, "int32"), threads=threads)
    assert run.arrays["a2"].tolist() == [1]
    run = machine.run("long_compute", 2, 32, 500_000, Out(32, "uint32"), threads=threads)
    assert run.result.status == "ok"
    run = machine.run("long_holder", 20, 32, zeros(1), 500_000, Out(20, "uint32"), threads=threads)
    assert run.result.status == "ok"
    assert len(set(run.arrays["a2"].tolist())) == 1


def test_an_endless_computation_is_a_timeout(machine: Machine, threads: int) -> None:
    run = machine.run("long_compute", 1, 32, 2**31 - 1, Out(32, "uint32"), threads=threads, seconds=0.5)
    assert run.result.status == "timeout"


def test_an_endless_loop_that_waits_for_nobody_is_a_timeout(machine: Machine, threads: int) -> None:
    """It has no effect on itself either, but it does not look at what others do."""
    run = machine.run("same_again", 1, 32, np.ones(32, "f4"), Out(32), 1, threads=threads, seconds=0.5)
    assert run.result.status == "timeout"
