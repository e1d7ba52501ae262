"""Loads that are checked by the batch say what loads checked one by one say."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda, line_of

SOURCE = r"""
extern "C" {
__global__ void unrolled(int last, const float *x, float *y) {
  const float *from = x + threadIdx.x;
  float sum = from[0] + from[32] + from[64];
  if (last) sum += from[32 * last];
  y[threadIdx.x] = sum;
}
__global__ void reaches_too_far(const float *x, float *y) {
  float first = x[threadIdx.x];
  float second = x[threadIdx.x + 32];
  float third = x[threadIdx.x + 64];   // too far
  y[threadIdx.x] = first + second + third;
}
__global__ void partly_written(float *x, float *y) {
  x[threadIdx.x] = 1;
  if (threadIdx.x < 31) x[threadIdx.x + 32] = 2;
  float first = x[31 - threadIdx.x];
  float second = x[63 - threadIdx.x];   // one place not written
  y[threadIdx.x] = first + second;
}
__global__ void writes_what_is_read(float *y) {
  __shared__ float tile[128];
  int t = threadIdx.x;
  tile[t] = t; tile[t + 64] = t;
  __syncthreads();
  float sum = tile[t % 32] + tile[t % 32 + 32] + tile[t % 32 + 64];
  if (t >= 32) tile[t ^ 32] = sum;   // what the other warp reads
  y[t] = sum;
}
__global__ void reads_what_is_written(float *y) {
  __shared__ float tile[128];
  int t = threadIdx.x;
  tile[t] = t; tile[t + 64] = t;
  __syncthreads();
  tile[t + 64] = 1;
  float first = tile[t % 32], second = tile[t % 32 + 64];   // of another warp
  y[t] = first + second;
}
__global__ void rounds(int apart, float *y) {
  __shared__ float tile[256];
  int t = threadIdx.x;
  tile[t] = t; tile[t + 128] = t;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < 4; i++) {
    sum += tile[63 - t] + tile[t ^ 1];
    __syncthreads();   // every round
    tile[t + apart] = sum;
    __syncthreads();
  }
  y[t] = sum;
}
}
"""


@pytest.fixture(scope="module")
def machine(jail: None, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(compile_cuda(SOURCE, tmp_path_factory.mktemp("batches")))


def test_unrolled_loads_count_by_their_own_alignment(machine: Machine) -> None:
    x = np.arange(128, dtype="f4")
    run = machine.run("unrolled", 1, 32, 3, x, Out(32))
    assert (run.arrays["a2"] == x[:32] + x[32:64] + x[64:96] + x[96:]).all()
    assert (run.total("global_load_requests"), run.total("global_load_sectors")) == (4, 16)
    assert run.trace.distinct_load_sectors == 16


def test_the_load_that_leaves_the_array_is_the_one_named(machine: Machine) -> None:
    fault = machine.run("reaches_too_far", 1, 32, np.zeros(80, "f4"), Out(32)).fault
    assert (fault.kind, fault.line, fault.thread) == (
        "out of bounds",
        line_of(SOURCE, "// too far"),
        (16, 0, 0),
    )


def test_the_load_of_what_nobody_wrote_is_the_one_named(machine: Machine) -> None:
    fault = machine.run("partly_written", 1, 32, Out(64), Out(32)).fault
    line = line_of(SOURCE, "// one place not written")
    assert (fault.kind, fault.line, fault.thread) == ("uninitialised", line, (0, 0, 0))


@pytest.mark.parametrize(
    ("kernel", "line"),
    [
        ("writes_what_is_read", "// what the other warp reads"),
        ("reads_what_is_written", "// of another warp"),
    ],
)
def test_races_with_loads_of_a_batch(machine: Machine, kernel: str, line: str) -> None:
    fault = machine.run(kernel, 1, 64, Out(64), threads=1).fault
    assert (fault.kind, fault.line) == ("race", line_of(SOURCE, line))


@pytest.mark.parametrize(("apart", "useless"), [(0, 1), (128, 8)])
def test_barriers_between_loads_and_stores(machine: Machine, apart: int, useless: int) -> None:
    """The last one orders nothing; nor do those between reads and writes of places that never meet."""
    trace = machine.run("rounds", 1, 64, apart, Out(64)).trace
    assert trace.barriers_executed == 9
    assert trace.useless_barriers == useless
