"""Every check: one program that has the fault, and its neighbour that does not."""

from __future__ import annotations

import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda, line_of

from sandbox.plan import DEVICE_BASE, SCRATCH_BASE, Allocate, Copy, Free, Memset, Upload

SOURCE = r"""
#include <assert.h>
extern "C" {
__global__ void guard(int n, int limit, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < limit) {
    float value = x[i];   // reads x
    y[i] = value;         // writes y
  }
}
__global__ void before_start(const float *x, float *y) {
  y[threadIdx.x] = x[(int)threadIdx.x - 1 + (threadIdx.x == 0)];
  y[threadIdx.x] += x[(int)threadIdx.x - 1];   // one before x
}
__global__ void nothing(float *y, const float *none) {
  y[0] = none[4];   // a null pointer
}
__global__ void follow(float *const *table, float *y) {
  y[threadIdx.x] = table[0][threadIdx.x];   // through a table
}
__global__ void odd(const char *bytes, float *y, int by) {
  y[0] = *(const float *)(bytes + by);   // perhaps misaligned
}
__global__ void copy(int n, const float *x, float *y) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i];   // copies
}
__global__ void accumulate(float *y, int set) {
  if (set) y[threadIdx.x] = 0;
  y[threadIdx.x] += 1;   // reads what it adds to
}
__global__ void shared_fault(float *y, int far, int fill) {
  __shared__ float tile[32];
  if (fill || threadIdx.x != 5) tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.x] = tile[31 - threadIdx.x + far];   // reads the tile
}
__global__ void shared_race(float *y, int safe) {
  __shared__ float tile[64];
  tile[63 - threadIdx.x] = 0;
  __syncthreads();
  tile[threadIdx.x] = 1; if (safe) __syncthreads(); y[threadIdx.x] = tile[63 - threadIdx.x];   // races
}
__global__ void fill_and_read(float *y, int safe) {
  __shared__ float tile[64];
  tile[threadIdx.x] = threadIdx.x;
  if (safe) __syncthreads();
  y[threadIdx.x] = tile[63 - threadIdx.x];   // too early
}
__global__ void write_race(int *y, int same) {
  __shared__ int cell;
  cell = same ? 7 : threadIdx.x;   // all write
  __syncthreads();
  y[threadIdx.x] = cell;
}
__global__ void read_then_write(int *y, int safe) {
  __shared__ int tile[64];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  int value = tile[(threadIdx.x + 1) % 64];
  if (safe) __syncthreads();
  tile[threadIdx.x] = value + 1;   // before others have read
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x];
}
__global__ void warp_synchronous(int *y, int safe) {
  __shared__ int tile[32];
  tile[threadIdx.x] = threadIdx.x;
  if (safe) __syncwarp();
  y[threadIdx.x] = tile[31 - threadIdx.x];   // of the same warp
}
__global__ void atomics(int *y) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, 1);
  __syncthreads();
  y[threadIdx.x] = sum;
}
__global__ void lopsided(int *y, int even) {
  if (even || threadIdx.x < 16) __syncthreads();   // half a warp
  y[threadIdx.x] = threadIdx.x;
  if (!even && threadIdx.x >= 16) __syncthreads();
}
__global__ void missing(int *y, int all) {
  if (all || threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");   // one warp of two
  y[threadIdx.x] = threadIdx.x;
}
__global__ void leave_early(int n, int *y) {
  if (threadIdx.x >= n) return;
  __syncthreads();
  y[threadIdx.x] = threadIdx.x;
}
__global__ void absent_lanes(int *y, int all) {
  int value = threadIdx.x;
  if (all || threadIdx.x < 8) value = __shfl_xor_sync(all ? ~0u : 0xffffu, value, 1);   // names more lanes
  __syncthreads();   // lanes 8 to 15 are here
  y[threadIdx.x] = value;
}
__global__ void lanes_that_left(int *y, unsigned members) {
  if (threadIdx.x >= 8) return;
  y[threadIdx.x] = __shfl_xor_sync(members, threadIdx.x, 1);
}
__global__ void late_lanes(volatile int *y, unsigned members) {
  if (threadIdx.x == 32) {
    for (int i = 0; i < 3000; i++) y[1] = i;
    y[0] = 1;
  }
  if (threadIdx.x < 16) while (y[0] == 0) {}   // long after the other lanes are at the vote
  y[2 + threadIdx.x] = __ballot_sync(members, true);
}
__global__ void asserts(int *y, int limit) {
  assert(threadIdx.x < limit);   // the claim
  y[threadIdx.x] = 1;
}
__global__ void traps(int *y, int limit) {
  if (threadIdx.x >= limit) __trap();   // gives up
  y[threadIdx.x] = 1;
}
__global__ void forever(volatile int *y) {
  int turns = 0;
  while (y[0] == 0) turns++;
  y[1] = turns;
}
__global__ void local_array(int *y, int at) {
  int values[8];
  for (int i = 0; i < 8; i++) values[i] = i * threadIdx.x;
  y[threadIdx.x] = values[at];   // from local memory
}
__global__ void unset_local_array(float *y) {
  volatile float values[8];
  y[threadIdx.x] = values[threadIdx.x % 8];
}
__global__ void barrier_number(int *y, int number) {
  asm volatile("bar.sync %0;" ::"r"(number));   // which one
  y[threadIdx.x] = threadIdx.x;
}
}
"""
X = np.arange(100, dtype="f4")
SCRATCH = SCRATCH_BASE + (1 << 16)


@pytest.fixture(scope="module")
def machine(jail: None, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(compile_cuda(SOURCE, tmp_path_factory.mktemp("checks")))


def test_out_of_bounds_names_the_allocation_and_the_place(machine: Machine) -> None:
    good = machine.run("guard", 1, 128, 100, 100, X, Out(100))
    assert (good.arrays["a3"] == X).all()
    fault = machine.run("guard", 2, 64, 100, 101, X, Out(100)).fault
    assert fault.kind == "out of bounds"
    assert fault.line == line_of(SOURCE, "// reads x")
    assert fault.kernel == "guard"
    assert (fault.block, fault.thread) == ((1, 0, 0), (36, 0, 0))
    assert "right behind the end of a2 (400 bytes)" in fault.message
    assert fault.space == "global"


def test_one_before_the_start(machine: Machine) -> None:
    fault = machine.run("before_start", 1, 32, X, Out(100)).fault
    assert fault.kind == "out of bounds"
    assert fault.line == line_of(SOURCE, "// one before x")
    assert "right before the start of a0 (400 bytes)" in fault.message


def test_null_pointer(machine: Machine) -> None:
    fault = machine.run("nothing", 1, 1, Out(1), 0).fault
    assert (fault.kind, fault.line, fault.address) == ("null", line_of(SOURCE, "// a null pointer"), 16)


def test_pointers_in_tables(machine: Machine) -> None:
    """Addresses mean the same wherever they are stored, and are checked just the same."""
    x_address = DEVICE_BASE + 2 * (1 << 16) + (1 << 16)
    table = np.array([x_address + 0], "u8")
    run = machine.run("follow", 1, 32, table, Out(32), before=[])
    # a0 lies at DEVICE_BASE + 64 KiB and a1 behind it: the table points at a1, which nobody wrote.
    assert run.fault.kind == "uninitialised"
    wild = machine.run("follow", 1, 32, np.array([0x123456789000], "u8"), Out(32))
    assert wild.fault.kind == "out of bounds"
    assert "far from every allocation" in wild.fault.message


def test_misaligned(machine: Machine) -> None:
    data = np.arange(64, dtype="u1")
    assert machine.run("odd", 1, 1, data, Out(1), 4).arrays["a1"][0] == data[4:8].view("f4")[0]
    fault = machine.run("odd", 1, 1, data, Out(1), 6).fault
    assert (fault.kind, fault.line) == ("misaligned", line_of(SOURCE, "// perhaps misaligned"))


def test_uninitialised_output(machine: Machine) -> None:
    assert (machine.run("accumulate", 1, 32, Out(32), 1).arrays["a0"] == 1).all()
    fault = machine.run("accumulate", 1, 32, Out(32), 0).fault
    assert (fault.kind, fault.line) == ("uninitialised", line_of(SOURCE, "// reads what it adds to"))
    assert "a0 (128 bytes)" in fault.message


def test_scratch_memory(machine: Machine) -> None:
    """Allocated memory is uninitialised until something is written; freed memory is no memory."""
    run = machine.run
    scratch = np.uint64(SCRATCH)
    allocate = Allocate(address=SCRATCH, bytes=256)
    assert run("copy", 1, 32, 64, scratch, Out(64), before=[allocate]).fault.kind == "uninitialised"
    filled = run(
        "copy", 1, 32, 64, scratch, Out(64), before=[allocate, Memset(address=SCRATCH, value=0, bytes=256)]
    )
    assert (filled.arrays["a2"] == 0).all()
    upload = Upload(to=SCRATCH, data=X[:64].tobytes().hex())
    assert (run("copy", 1, 32, 64, scratch, Out(64), before=[allocate, upload]).arrays["a2"] == X[:64]).all()
    freed = run("copy", 1, 32, 64, scratch, Out(64), before=[allocate, upload, Free(address=SCRATCH)]).fault
    assert freed.kind == "use after free"
    x_address = DEVICE_BASE + (1 << 16)
    copied = run(
        "copy", 1, 32, 64, X, scratch, before=[allocate, Copy(to=SCRATCH, source=x_address, bytes=256)]
    )
    assert copied.result.status == "ok"
    too_far = run(
        "copy", 1, 32, 64, scratch, Out(64), before=[allocate, Memset(address=SCRATCH, value=0, bytes=257)]
    )
    assert (too_far.fault.kind, too_far.fault.kernel) == ("out of bounds", "cudaMemset")


def test_shared_memory_bounds_and_initialisation(machine: Machine) -> None:
    assert machine.run("shared_fault", 1, 32, Out(32), 0, 1).arrays["a0"].tolist() == list(range(31, -1, -1))
    fault = machine.run("shared_fault", 1, 32, Out(32), 1, 1).fault
    assert (fault.kind, fault.space, fault.thread) == ("out of bounds", "shared", (0, 0, 0))
    assert fault.line == line_of(SOURCE, "// reads the tile")
    fault = machine.run("shared_fault", 1, 32, Out(32), 0, 0).fault
    assert (fault.kind, fault.space, fault.thread) == ("uninitialised", "shared", (26, 0, 0))


def test_a_missing_barrier_that_shows_as_memory_nobody_wrote(machine: Machine) -> None:
    assert machine.run("fill_and_read", 1, 64, Out(64), 1).arrays["a0"].tolist() == list(range(63, -1, -1))
    fault = machine.run("fill_and_read", 1, 64, Out(64), 0).fault
    assert (fault.kind, fault.line) == ("uninitialised", line_of(SOURCE, "// too early"))
    assert "is a barrier missing?" in fault.message


@pytest.mark.parametrize(
    ("kernel", "dtype", "threads", "mark"),
    [
        ("shared_race", "float32", 64, "// races"),
        ("read_then_write", "int32", 64, "// before others have read"),
        ("write_race", "int32", 64, "// all write"),
        ("warp_synchronous", "int32", 32, "// of the same warp"),
    ],
)
def test_shared_memory_races(machine: Machine, kernel: str, dtype: str, threads: int, mark: str) -> None:
    assert machine.run(kernel, 2, threads, Out(threads, dtype), 1).result.status == "ok"
    fault = machine.run(kernel, 1, threads, Out(threads, dtype), 0).fault
    assert (fault.kind, fault.line, fault.space) == ("race", line_of(SOURCE, mark), "shared")


def test_atomics_do_not_race(machine: Machine) -> None:
    assert (machine.run("atomics", 1, 96, Out(96, "int32")).arrays["a0"] == 96).all()


def test_divergent_barrier(machine: Machine) -> None:
    assert machine.run("lopsided", 1, 32, Out(32, "int32"), 1).result.status == "ok"
    fault = machine.run("lopsided", 1, 32, Out(32, "int32"), 0).fault
    assert fault.kind == "barrier"
    assert fault.line == line_of(SOURCE, "// half a warp")


def test_missing_warp_at_a_barrier(machine: Machine) -> None:
    assert machine.run("missing", 1, 64, Out(64, "int32"), 1).result.status == "ok"
    fault = machine.run("missing", 1, 64, Out(64, "int32"), 0).fault
    assert (fault.kind, fault.line) == ("barrier", line_of(SOURCE, "// one warp of two"))


def test_exited_threads_are_not_waited_for(machine: Machine) -> None:
    run = machine.run("leave_early", 1, 128, 50, Out(50, "int32"))
    assert run.arrays["a1"].tolist() == list(range(50))


def test_shuffle_that_names_absent_lanes(machine: Machine) -> None:
    assert machine.run("absent_lanes", 1, 32, Out(32, "int32"), 1).result.status == "ok"
    fault = machine.run("absent_lanes", 1, 32, Out(32, "int32"), 0).fault
    assert (fault.kind, fault.line) == ("barrier", line_of(SOURCE, "// names more lanes"))


def test_lanes_that_have_left_are_not_waited_for(machine: Machine) -> None:
    run = machine.run("lanes_that_left", 1, 32, Out(32, "int32"), 0xFFFF)
    assert run.result.status == "ok"
    assert run.arrays["a0"][:8].tolist() == [1, 0, 3, 2, 5, 4, 7, 6]


def test_a_vote_waits_for_lanes_that_spin_before_they_come(machine: Machine) -> None:
    """Also where its members are known at run time only."""
    run = machine.run("late_lanes", 1, 64, np.zeros(66, "i4"), -1)
    assert run.result.status == "ok"
    assert run.arrays["a0"][2:].tolist() == [-1] * 64


def test_assert_and_trap(machine: Machine) -> None:
    assert machine.run("asserts", 1, 32, Out(32, "int32"), 32).result.status == "ok"
    fault = machine.run("asserts", 1, 32, Out(32, "int32"), 30).fault
    assert (fault.kind, fault.line, fault.thread) == ("assert", line_of(SOURCE, "// the claim"), (30, 0, 0))
    assert "threadIdx.x < limit" in fault.message
    assert machine.run("traps", 1, 32, Out(32, "int32"), 32).result.status == "ok"
    fault = machine.run("traps", 1, 32, Out(32, "int32"), 7).fault
    assert (fault.kind, fault.line, fault.thread) == ("trap", line_of(SOURCE, "// gives up"), (7, 0, 0))


def test_endless_loop_times_out(machine: Machine) -> None:
    run = machine.run("forever", 1, 32, np.zeros(2, "i4"), seconds=0.3)
    assert run.result.status == "timeout"
    assert machine.run("forever", 1, 32, np.ones(2, "i4"), seconds=5).result.status == "ok"


def test_local_memory_bounds(machine: Machine) -> None:
    assert machine.run("local_array", 1, 32, Out(32, "int32"), 3).arrays["a0"].tolist() == [
        3 * i for i in range(32)
    ]
    fault = machine.run("local_array", 1, 32, Out(32, "int32"), 8).fault
    assert (fault.kind, fault.space, fault.line) == (
        "out of bounds",
        "local",
        line_of(SOURCE, "// from local memory"),
    )


def test_local_memory_is_not_zero_by_luck(machine: Machine) -> None:
    assert np.isnan(machine.run("unset_local_array", 3, 32, Out(32)).arrays["a0"]).all()


def test_barrier_numbers(machine: Machine) -> None:
    assert machine.run("barrier_number", 1, 64, Out(64, "int32"), 15).result.status == "ok"
    fault = machine.run("barrier_number", 1, 64, Out(64, "int32"), 16).fault
    assert (fault.kind, fault.line) == ("barrier", line_of(SOURCE, "// which one"))
    assert fault.message == "there are barriers 0 to 15, not 16"


def test_the_fault_of_the_lowest_block_is_reported(machine: Machine) -> None:
    for _ in range(5):
        fault = machine.run("guard", 50, 32, 100, 10_000, X, Out(100)).fault
        assert fault.block == (3, 0, 0)
