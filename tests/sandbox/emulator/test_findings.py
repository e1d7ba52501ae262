"""Launches that go on after a finding: what is reported, what the launch still does, what it does not."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda, line_of

SOURCE = r"""
extern "C" {
__global__ void too_far(int n, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] =   // stores
      x[i] + 1;   // loads
}
__global__ void odd(const char *bytes, float *y, int by) {
  y[threadIdx.x] = *(const float *)(bytes + 4 * threadIdx.x + (threadIdx.x == 3 ? by : 0));   // one is odd
}
__global__ void unset(float *y, float *z) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  z[i] = y[i] + 1;   // never written
}
__global__ void races(int *y) {
  __shared__ int cell, same;
  cell = threadIdx.x;   // all write
  same = blockDim.x;   // the same value
  __syncthreads();
  y[threadIdx.x] = (cell > 1000) + same;
}
__global__ void absent(int *y) {
  int value = threadIdx.x;
  if (threadIdx.x < 8) value = __shfl_xor_sync(0xffff, value, 1);   // names more lanes
  __syncwarp();
  y[threadIdx.x] = value;
}
__global__ void padded(const float4 *in, float4 *cells, float *y) {
  cells[threadIdx.x].x = in[threadIdx.x].x;
  __syncwarp();
  float4 cell = cells[threadIdx.x];   // three of four were never written
  cells[threadIdx.x] = cell;
  y[threadIdx.x] = cell.x;
}
}
"""


@pytest.fixture(scope="module")
def machine(jail: None, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(compile_cuda(SOURCE, tmp_path_factory.mktemp("findings")))


def test_every_line_is_told_once_with_a_count(machine: Machine) -> None:
    x = np.zeros(100, "f4")
    run = machine.run("too_far", 4, 32, 0, x, Out(96), keep_going=True)
    load, store = run.result.findings
    assert run.fault.kind == "out of bounds"
    assert (load.kind, load.line, load.count) == ("out of bounds", line_of(SOURCE, "// loads"), 28)
    assert (load.block, load.thread, load.bytes) == ((3, 0, 0), (4, 0, 0), 4)
    assert (load.allocation, load.allocation_bytes, load.severity) == ("a1", 400, "error")
    assert (store.kind, store.line, store.count) == ("out of bounds", line_of(SOURCE, "// stores"), 32)
    assert (store.block, store.thread, store.allocation) == ((3, 0, 0), (0, 0, 0), "a2")


def test_only_the_bad_lane_is_suppressed(machine: Machine) -> None:
    run = machine.run("odd", 1, 32, np.zeros(200, "u1"), Out(32), 2, keep_going=True)
    [finding] = run.result.findings
    assert (finding.kind, finding.thread, finding.count) == ("misaligned", (3, 0, 0), 1)
    assert run.result.status == "fault"


def test_an_uninitialised_read_does_not_fail_the_launch(machine: Machine) -> None:
    run = machine.run("unset", 2, 32, Out(64), Out(64), keep_going=True)
    [finding] = run.result.findings
    assert (finding.kind, finding.line, finding.count) == (
        "uninitialised",
        line_of(SOURCE, "// never written"),
        64,
    )
    assert run.result.status == "ok"


def test_races_in_shared_memory(machine: Machine) -> None:
    run = machine.run("races", 1, 64, Out(64, "int32"), keep_going=True)
    found = {(finding.line, finding.severity) for finding in run.result.findings}
    assert found == {
        (line_of(SOURCE, "// all write"), "error"),
        (line_of(SOURCE, "// the same value"), "note"),
    }
    assert run.arrays["a0"].tolist() == [64] * 64


def test_a_shuffle_that_names_absent_lanes(machine: Machine) -> None:
    run = machine.run("absent", 1, 32, Out(32, "int32"), keep_going=True)
    [finding] = run.result.findings
    assert (finding.kind, finding.line) == ("barrier", line_of(SOURCE, "// names more lanes"))
    assert run.arrays["a0"].tolist() == [1, 0, 3, 2, 5, 4, 7, 6, *range(8, 32)]


def test_padding_may_be_read(machine: Machine) -> None:
    run = machine.run("padded", 1, 32, np.ones((32, 4), "f4"), Out(128), Out(32))
    assert run.result.status == "ok"
    assert (run.arrays["a2"] == 1).all()
