"""Counters against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda, line_of

SOURCE = r"""
extern "C" {
__global__ void coalesced(const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] * 2.0f;   // coalesced
}
__global__ void strided(int stride, const float *x, float *y) {
  int i = threadIdx.x;
  y[i] = x[i * stride];   // strided
}
__global__ void doubles(const double *x, double *y) {
  y[threadIdx.x] = __fma_rn(x[threadIdx.x], 3.0, 1.0);   // doubles
}
__global__ void same(const float *x, float *y) {
  y[threadIdx.x] = x[0];   // one address
}
__global__ void vectors(const float4 *x, float4 *y) {
  y[threadIdx.x] = x[threadIdx.x];   // sixteen bytes
}
__global__ void transpose_unpadded(const float *x, float *y) {
  __shared__ float tile[32][32];
  tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * 32 + threadIdx.x];   // rows in
  __syncthreads();
  y[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];   // columns out
}
__global__ void shared_vectors(float *y) {
  __shared__ float4 tile[32];
  tile[threadIdx.x] = make_float4(threadIdx.x, 1, 2, 3);   // wide store
  __syncthreads();
  float4 v = tile[31 - threadIdx.x];   // wide load
  y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
__global__ void shared_broadcast(float *y) {
  __shared__ float tile[64];
  tile[threadIdx.x] = threadIdx.x; tile[threadIdx.x + 32] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = tile[7];   // broadcast
  y[threadIdx.x] += tile[threadIdx.x / 16 * 32];   // two words of one bank
}
__global__ void halves(int *y) {
  int value = y[threadIdx.x];
  if (value % 2) {
    for (int i = 0; i < value; i++) y[64 + 64 * i + threadIdx.x] = i;   // odd lanes
  }
  y[threadIdx.x] = value + 1;   // all lanes
}
__global__ void barriers(float *y) {
  __shared__ float tile[64];
  tile[threadIdx.x] = 1;
  __syncthreads();
  float v = tile[63 - threadIdx.x];
  __syncthreads();   // orders nothing that follows
  y[threadIdx.x] = v;
}
__global__ void counted_atomics(int *y) {
  atomicAdd(y + threadIdx.x % 4, 1);   // four addresses
}
__global__ void lopsided(int *y) {
  int n = blockIdx.x == 0 ? 100 : 10, sum = 0;
  for (int i = 0; i < n; i++) sum = sum * 3 + y[0];
  y[1 + blockIdx.x] = sum;
}
}
"""


@pytest.fixture(scope="module")
def machine(jail: None, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(compile_cuda(SOURCE, tmp_path_factory.mktemp("counters")))


def floats(count: int) -> np.ndarray:
    return np.arange(count, dtype="f4")


def test_coalesced_floats_take_four_sectors_a_request(machine: Machine) -> None:
    run = machine.run("coalesced", 2, 64, floats(128), Out(128))
    row = run.line(line_of(SOURCE, "// coalesced"))
    assert (row.global_load_requests, row.global_load_sectors, row.global_load_bytes) == (4, 16, 512)
    assert (row.global_store_requests, row.global_store_sectors, row.global_store_bytes) == (4, 16, 512)
    assert row.flop_fp32 == 128
    assert (run.trace.distinct_load_sectors, run.trace.distinct_store_sectors) == (16, 16)
    assert (run.trace.threads, run.trace.warps.count, run.trace.blocks.count) == (128, 4, 2)
    assert run.trace.warps.standard_deviation == 0


@pytest.mark.parametrize(("stride", "sectors"), [(1, 4), (2, 8), (3, 12), (8, 32), (32, 32)])
def test_strides(machine: Machine, stride: int, sectors: int) -> None:
    row = machine.run("strided", 1, 32, stride, floats(32 * stride), Out(32)).line(
        line_of(SOURCE, "// strided")
    )
    assert (row.global_load_requests, row.global_load_sectors, row.global_load_bytes) == (1, sectors, 128)
    assert row.global_store_sectors == 4


def test_a_shifted_row_touches_one_sector_more(machine: Machine) -> None:
    row = machine.run("coalesced", 1, 30, floats(32), Out(32)).line(line_of(SOURCE, "// coalesced"))
    assert (row.global_load_sectors, row.global_load_bytes) == (4, 120)


def test_doubles_and_vectors(machine: Machine) -> None:
    row = machine.run("doubles", 1, 32, np.ones(32), Out(32, "float64")).line(line_of(SOURCE, "// doubles"))
    assert (row.global_load_sectors, row.global_load_bytes, row.flop_fp64) == (8, 256, 64)
    row = machine.run("vectors", 1, 32, floats(128), Out(128)).line(line_of(SOURCE, "// sixteen bytes"))
    assert (row.global_load_requests, row.global_load_sectors, row.global_load_bytes) == (1, 16, 512)
    row = machine.run("same", 1, 32, floats(1), Out(32)).line(line_of(SOURCE, "// one address"))
    assert (row.global_load_sectors, row.global_load_bytes) == (1, 4)


def test_unpadded_transpose_has_31_extra_wavefronts_a_request(machine: Machine) -> None:
    run = machine.run("transpose_unpadded", 1, (32, 32), floats(1024), Out(1024))
    row = run.line(line_of(SOURCE, "// columns out"))
    assert (row.shared_load_requests, row.shared_load_ideal) == (32, 32)
    assert row.shared_load_wavefronts - row.shared_load_ideal == 32 * 31
    row = run.line(line_of(SOURCE, "// rows in"))
    assert (row.shared_store_requests, row.shared_store_wavefronts, row.shared_store_ideal) == (32, 32, 32)


def test_wide_shared_accesses_go_in_quarters(machine: Machine) -> None:
    run = machine.run("shared_vectors", 1, 32, Out(32))
    row = run.line(line_of(SOURCE, "// wide store"))
    assert (row.shared_store_requests, row.shared_store_wavefronts, row.shared_store_ideal) == (1, 4, 4)
    row = run.line(line_of(SOURCE, "// wide load"))
    assert (row.shared_load_wavefronts, row.shared_load_ideal) == (4, 4)


def test_broadcast_is_free_and_two_words_of_a_bank_are_not(machine: Machine) -> None:
    run = machine.run("shared_broadcast", 1, 32, Out(32))
    row = run.line(line_of(SOURCE, "// broadcast"))
    assert (row.shared_load_wavefronts, row.shared_load_ideal) == (1, 1)
    row = run.line(line_of(SOURCE, "// two words of one bank"))
    assert (row.shared_load_wavefronts, row.shared_load_ideal) == (2, 1)


def test_divergence(machine: Machine) -> None:
    """Odd lanes of two warps go round a loop 1 to 3 times."""
    y = np.concatenate([np.arange(64) % 4, np.zeros(256)]).astype("i4")
    run = machine.run("halves", 1, 64, y)
    row = run.line(line_of(SOURCE, "// odd lanes"))
    assert (row.global_store_requests, row.global_store_bytes) == (2 * 3, 2 * (16 + 8 + 8) * 4)
    assert row.active_lanes <= 16 * row.instructions
    assert run.total("divergent_branches") == 2 * 2  # into the loop, and out of it
    row = run.line(line_of(SOURCE, "// all lanes"))
    assert row.active_lanes == 32 * row.instructions


def test_useless_barriers(machine: Machine) -> None:
    trace = machine.run("barriers", 3, 64, Out(64)).trace
    assert (trace.barriers_executed, trace.useless_barriers) == (6, 3)
    assert sum(line.barriers for line in trace.lines) == 2 * 2 * 3


def test_atomics(machine: Machine) -> None:
    row = machine.run("counted_atomics", 1, 64, np.zeros(4, "i4")).line(line_of(SOURCE, "// four addresses"))
    assert (row.atomics, row.atomic_lanes, row.atomic_addresses) == (2, 64, 8)


def test_spread_over_blocks(machine: Machine) -> None:
    trace = machine.run("lopsided", 4, 32, np.ones(8, "i4")).trace
    assert trace.blocks.maximum > 3 * trace.blocks.minimum
    assert trace.blocks.count == 4
    assert trace.blocks.standard_deviation > 0
    assert trace.blocks.mean * 4 == sum(line.instructions for line in trace.lines)


def test_counting_can_be_off(machine: Machine) -> None:
    run = machine.run("coalesced", 2, 64, floats(128), Out(128), count=False)
    assert run.result.status == "ok"
    assert run.result.launches == []
    assert (run.arrays["a1"] == 2 * floats(128)).all()
