"""Races in global memory: kernels with the fault, and every way of doing it right, which gives no alarm."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import Array, Machine, Out, compile_cuda, line_of

SOURCE = r"""
#include <cuda/atomic>
using Flag = cuda::atomic_ref<int, cuda::thread_scope_device>;
__device__ unsigned arrived;
__device__ void everybody(int round) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(&arrived, 1);
    while (*(volatile unsigned *)&arrived < (round + 1) * gridDim.x) { }
    __threadfence();
  }
  __syncthreads();
}
extern "C" {
__global__ void shift_in_place(int n, float *x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 1 < n) x[i] = x[i + 1];   // another thread's
}
__global__ void shift(int n, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 1 < n) y[i] = x[i + 1];
}
__global__ void through_global(float *x, float *y, int safe) {
  int i = threadIdx.x, base = blockIdx.x * blockDim.x;
  x[base + i] = i;   // its own
  if (safe) __syncthreads();
  y[base + i] = x[base + (i + 32) % blockDim.x];   // of another warp
}
__global__ void in_a_warp(float *x, float *y, int safe) {
  x[threadIdx.x] = threadIdx.x;
  if (safe) __syncwarp();
  y[threadIdx.x] = x[31 - threadIdx.x];   // of another lane
}
__global__ void one_cell(int *cell, int same) {
  cell[0] = same ? 7 : threadIdx.x;   // all write
}
__global__ void histogram(int n, const int *keys, int *bins, int atomic) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (atomic) atomicAdd(&bins[keys[i]], 1);
  else bins[keys[i]] += 1;   // updates the bin
}
__global__ void sum_by_last_block(const float *x, float *partial, unsigned *count, float *sum, int fenced) {
  __shared__ bool last;
  partial[blockIdx.x * blockDim.x + threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  if (fenced) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned ticket = atomicInc(count, gridDim.x);
    last = ticket == gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    float total = 0;
    for (int i = threadIdx.x; i < gridDim.x * blockDim.x; i += blockDim.x)
      total += partial[i];   // of all blocks
    atomicAdd(sum, total);
    if (threadIdx.x == 0) *count = 0;
  }
}
__global__ void look_back(const int *x, volatile int *state, int *sums, int *out) {
  __shared__ int before;
  int b = blockIdx.x;
  if (threadIdx.x == 0) {
    int total = 0;
    for (int i = 0; i < blockDim.x; ++i) total += x[b * blockDim.x + i];
    int carry = 0;
    if (b > 0) {
      while (state[b - 1] == 0) { }
      __threadfence();
      carry = sums[b - 1];
    }
    sums[b] = carry + total;
    __threadfence();
    state[b] = 1;
    before = carry;
  }
  __syncthreads();
  int running = before;
  for (int i = 0; i <= threadIdx.x; ++i) running += x[b * blockDim.x + i];
  out[b * blockDim.x + threadIdx.x] = running;
}
__global__ void spin_lock(int *lock, int *total, int fenced) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) { }
    if (fenced) __threadfence();
    *total += 1;   // in the lock
    if (fenced) __threadfence();
    atomicExch(lock, 0);
  }
}
__global__ void lock_by_lane(int *lock, int *total) {
  bool done = false;
  while (!done)
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      *total += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
}
__global__ void ticket_lock(unsigned *next, volatile unsigned *serving, int *total) {
  if (threadIdx.x == 0) {
    unsigned mine = atomicAdd(next, 1);
    while (*serving != mine) { }
    __threadfence();
    *total += 1;
    __threadfence();
    *serving = mine + 1;
  }
}
__global__ void hand_over(int *data, int *flag, int *out, int how) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x + 1;
    if (how == 0) __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      if (how == 1) Flag(*flag).store(1, cuda::memory_order_release);
      else *(volatile int *)flag = 1;
    }
  } else {
    if (threadIdx.x == 0) {
      if (how == 1) while (!Flag(*flag).load(cuda::memory_order_acquire)) { }
      else while (!*(volatile int *)flag) { }
    }
    __syncthreads();
    out[threadIdx.x] = data[threadIdx.x];   // what block 0 wrote
  }
}
__global__ void phases(float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  for (int round = 0; round < 3; ++round) {
    x[i] = round + i;
    everybody(2 * round);
    y[i] = x[(i + 1) % n] + x[(i + n - 1) % n] + x[(i + n / 2) % n];
    everybody(2 * round + 1);
  }
}
__global__ void no_phases(float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  x[i] = i;   // one each
  __syncthreads();
  y[i] = x[(i + n / 2) % n];   // of another block
}
__global__ void queue(const int *jobs, int n, int *next, int *out) {
  __shared__ int job;
  while (true) {
    if (threadIdx.x == 0) job = atomicAdd(next, 1);
    __syncthreads();
    int mine = job;
    __syncthreads();
    if (mine >= n) return;
    out[mine * blockDim.x + threadIdx.x] = jobs[mine] + threadIdx.x;
  }
}
__global__ void bytes(unsigned char *x, int n, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = i;   // a byte each
  __syncthreads();
  if (i < n) x[i] = x[i] + x[(i + stride) % n] % 2;   // perhaps a neighbour's
}
__global__ void relax(float *d, int n, int k) {
  int i = blockIdx.x, j = threadIdx.x;
  float through = d[i * n + k] + d[k * n + j];
  d[i * n + j] = through < d[i * n + j] ? through : d[i * n + j];   // Floyd and Warshall
}
__global__ void mark_level(int *frontier, int *changed) {
  if (frontier[blockIdx.x * blockDim.x + threadIdx.x]) *changed = 1;   // the same value
}
__global__ void peek_maximum(const int *x, int *most) {
  int value = x[blockIdx.x * blockDim.x + threadIdx.x];
  if (value > *most) atomicMax(most, value);   // peeks first
}
__global__ void between_warps(int *data, volatile int *flag, int *out) {
  if (threadIdx.x < 32) {
    data[threadIdx.x] = threadIdx.x;
    __threadfence_block();
    __syncwarp();
    if (threadIdx.x == 0) *flag = 1;
  } else {
    while (*flag == 0) { }
    out[threadIdx.x - 32] = data[threadIdx.x - 32];
  }
}
}
"""


def ints(count: int) -> Array:
    return np.zeros(count, "i4")


X = np.arange(1, 257, dtype="f4")
FAULTY = {
    "shift_in_place": ((2, 128, 256, X), "// another thread's"),
    "through_global": ((2, 64, np.zeros(128, "f4"), Out(128), 0), "// its own"),
    "in_a_warp": ((1, 32, Out(32), Out(32), 0), "// of another lane"),
    "one_cell": ((1, 64, Out(1, "int32"), 0), "// all write"),
    "histogram": ((4, 32, 128, (np.arange(128) // 40).astype("i4"), ints(8), 0), "// updates the bin"),
    "sum_by_last_block": ((4, 64, X, Out(256), ints(1).view("u4"), np.zeros(1, "f4"), 0), "// of all blocks"),
    "spin_lock": ((4, 32, ints(1), ints(1), 0), "// in the lock"),
    "hand_over": ((2, 32, Out(32, "int32"), ints(1), Out(32, "int32"), 2), "// what block 0 wrote"),
    "no_phases": ((4, 32, np.zeros(128, "f4"), Out(128)), "// one each"),
    "bytes": ((2, 64, np.zeros(128, "u1"), 128, 40), "// a byte each"),
}
CLEAN = {
    "shift": (2, 128, 256, X, Out(256)),
    "through_global": (2, 64, Out(128), Out(128), 1),
    "in_a_warp": (1, 32, Out(32), Out(32), 1),
    "histogram": (4, 32, 128, (np.arange(128) // 40).astype("i4"), ints(8), 1),
    "sum_by_last_block": (4, 64, X, Out(256), ints(1).view("u4"), np.zeros(1, "f4"), 1),
    "look_back": (6, 32, np.ones(192, "i4"), ints(6), Out(6, "int32"), Out(192, "int32")),
    "spin_lock": (4, 32, ints(1), ints(1), 1),
    "lock_by_lane": (2, 64, ints(1), ints(1)),
    "ticket_lock": (4, 32, ints(1).view("u4"), ints(1).view("u4"), ints(1)),
    "hand_over": (2, 32, Out(32, "int32"), ints(1), Out(32, "int32"), 0),
    "queue": (3, 32, np.arange(10, dtype="i4"), 10, ints(1), Out(320, "int32")),
    "bytes": (2, 64, np.zeros(128, "u1"), 128, 0),
    "between_warps": (1, 64, Out(32, "int32"), ints(1), Out(32, "int32")),
}
NOTES = {
    "one_cell": ((2, 64, Out(1, "int32"), 1), "// all write"),
    "relax": (
        (16, 16, (np.arange(256) % 7 * np.float32(1) * (np.eye(16) == 0).ravel()).astype("f4"), 16, 3),
        "// Floyd",
    ),
    "mark_level": ((2, 64, np.ones(128, "i4"), ints(1)), "// the same value"),
    "peek_maximum": ((4, 32, np.arange(128, dtype="i4"), ints(1)), "// peeks first"),
}


@pytest.fixture(scope="module")
def machine(jail: None, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(compile_cuda(SOURCE, tmp_path_factory.mktemp("races")))


@pytest.mark.parametrize("kernel", sorted(FAULTY))
@pytest.mark.parametrize("threads", [1, 2])
def test_races_are_found(machine: Machine, kernel: str, threads: int) -> None:
    arguments, mark = FAULTY[kernel]
    fault = machine.run(kernel, *arguments, threads=threads).fault
    places = [mark]
    if threads > 1 and kernel == "bytes":  # which of the two comes second is chance
        places.append("// perhaps a neighbour's")
    assert (fault.kind, fault.space) == ("race", "global")
    assert fault.line in [line_of(SOURCE, place) for place in places]


@pytest.mark.parametrize("kernel", sorted(CLEAN))
@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_ordered_gives_no_alarm(machine: Machine, kernel: str, threads: int) -> None:
    for _ in range(3):
        run = machine.run(kernel, *CLEAN[kernel], threads=threads, keep_going=True)
        assert (run.result.status, run.result.findings) == ("ok", [])


def test_release_and_acquire(machine: Machine) -> None:
    for _ in range(3):
        run = machine.run("hand_over", 2, 32, Out(32, "int32"), ints(1), Out(32, "int32"), 1, keep_going=True)
        assert (run.result.status, run.result.findings) == ("ok", [])
        assert run.arrays["a2"].tolist() == list(range(1, 33))


def test_a_barrier_of_the_whole_grid(machine: Machine) -> None:
    for _ in range(3):
        run = machine.run("phases", 4, 32, Out(128), Out(128), cooperative=True, keep_going=True)
        assert (run.result.status, run.result.findings) == ("ok", [])


@pytest.mark.parametrize("kernel", sorted(NOTES))
def test_what_does_no_harm_is_a_note(machine: Machine, kernel: str) -> None:
    arguments, mark = NOTES[kernel]
    run = machine.run(kernel, *arguments, keep_going=True)
    assert run.result.status == "ok"
    assert {(finding.kind, finding.severity) for finding in run.result.findings} == {("race", "note")}
    assert line_of(SOURCE, mark) in {finding.line for finding in run.result.findings}
    assert machine.run(kernel, *arguments).result.status == "ok"


def test_both_accesses_are_named(machine: Machine) -> None:
    """Block 0 runs first here, so blocks read before others write and the other way round."""
    run = machine.run("no_phases", *FAULTY["no_phases"][0], keep_going=True, threads=1)
    write, read = line_of(SOURCE, "// one each"), line_of(SOURCE, "// of another block")
    assert {(finding.line, finding.other_line) for finding in run.result.findings} == {
        (write, read),
        (read, write),
    }
    assert {finding.allocation for finding in run.result.findings} == {"a0"}
    assert all("and nothing orders the two" in finding.message for finding in run.result.findings)
