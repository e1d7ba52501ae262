"""What every backend makes of a launch plan, the emulator and a GPU alike: the same host code recorded, the
same kernels run, the same words for what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sandbox import client, toolchain
from sandbox.cancellation import Cancellation
from sandbox.emulator import client as emulator
from sandbox.emulator.client import Buffer, Replay
from sandbox.gpu.client import Session, usable
from sandbox.plan import DEVICE_BASE, GUARD_BYTES, LaunchPlan
from sandbox.ptx import parameter_layout
from sandbox.recorder.client import record
from sandbox.replays import Replayed
from sandbox.targets import TARGETS
from sandbox.tasks.base import Parameter

Floats = npt.NDArray[np.float32]
N = 1000
PARAMETERS = [
    Parameter(name="what", kind="scalar", dtype="int32", c_type="int"),
    Parameter(name="n", kind="scalar", dtype="int32", c_type="int"),
    Parameter(name="x", kind="array", dtype="float32", c_type="const float *"),
    Parameter(name="y", kind="array", dtype="float32", c_type="float *"),
]
SOURCE = r"""
#include <cassert>
#include <cooperative_groups.h>
__device__ int calls = 5;
__constant__ float table[4];

__global__ void add(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + a;
}
__global__ void count(float *y) { y[0] = calls++; }
__global__ void look_up(float *y) { y[threadIdx.x] = table[threadIdx.x]; }
__global__ void reverse(int n, const float *x, float *y) {
  extern __shared__ float tile[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) tile[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = tile[n - 1 - i];
}
__global__ void twice(int n, const float *x, float *y) {  // y[i] = 2 x[n - 1 - i], over a barrier of the grid
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
  cooperative_groups::this_grid().sync();
  float other = i < n ? y[n - 1 - i] : 0;
  cooperative_groups::this_grid().sync();
  if (i < n) y[i] = 2 * other;
}
struct Table { const float *rows[2]; };
__global__ void gather(Table *table, float *y) { y[threadIdx.x] = table->rows[threadIdx.x & 1][threadIdx.x]; }
__global__ void put(float *to, long long at, float value) { to[at] = value; }
__global__ void trap() { asm volatile("trap;"); }
__global__ void claim(int n) { assert(n < 0); }
__global__ void skewed(float *y) { *(double *)(y + 1) = 1.0; }
// Counts in integers: a float stops at 2^24, and what changes nothing any more is a deadlock.
__global__ void endless(volatile float *y) { while (y[0] != 12345.0f) ((volatile unsigned *)y)[1] += 1; }

extern "C" void launch(int what, int n, const float *x, float *y) {
  float *scratch; Table *rows; Table host{{x, x + 100}};
  float values[4] = {1, 2, 3, 4};
  void *arguments[] = {&n, &x, &y};
  int blocks = (n + 255) / 256;
  switch (what) {
    case 0: add<<<blocks, 256>>>(n, 1.5f, x, y); break;
    case 1: count<<<1, 1>>>(y); count<<<1, 1>>>(y + 1); break;
    case 2: cudaMemcpyToSymbol(table, values, sizeof values); look_up<<<1, 4>>>(y); break;
    case 3:
      cudaMalloc(&scratch, n * sizeof(float));
      add<<<blocks, 256>>>(n, 1.0f, x, scratch);
      cudaMemcpy(y, scratch, n * sizeof(float), cudaMemcpyDeviceToDevice);
      cudaMemset(y, 0, 2 * sizeof(float));
      cudaMemcpy(y + 2, values, sizeof values, cudaMemcpyHostToDevice);
      cudaFree(scratch);
      break;
    case 4:
      cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);
      reverse<<<1, 128, 100000>>>(n, x, y);
      break;
    case 5: cudaLaunchCooperativeKernel((void *)twice, dim3(blocks), dim3(256), arguments, 0, 0); break;
    case 6:
      cudaMalloc(&rows, sizeof host);
      cudaMemcpy(rows, &host, sizeof host, cudaMemcpyHostToDevice);
      gather<<<1, 64>>>(rows, y);
      break;
    case 7: cudaMalloc(&scratch, 64); add<<<1, 16>>>(16, 0.0f, scratch, y); break;
    case 10: put<<<1, 1>>>(y, n, 1.0f); break;
    case 11: put<<<1, 1>>>(y, -1, 1.0f); break;
    case 12: put<<<1, 1>>>(y, 1ll << 34, 1.0f); break;
    case 13: trap<<<1, 1>>>(); break;
    case 14: claim<<<1, 1>>>(n); break;
    case 15: skewed<<<1, 1>>>(y); break;
    case 16: cudaMemset(y, 0, 8); endless<<<1, 1>>>(y); break;
  }
}
"""


@dataclass(frozen=True)
class Bench:
    """The compiled host code and one backend to run it on."""

    compiled: toolchain.Compiled
    backend: str
    target: str

    @contextmanager
    def place(self) -> Iterator[tuple[int, Any]]:
        """Where the device's range lies, and what replays."""
        if self.backend == "emulator":
            yield DEVICE_BASE, self._emulate
            return
        with Session(usable(self.target), Cancellation()) as session:
            assert self.compiled.cubin is not None
            cubin = self.compiled.cubin.read_bytes()
            yield session.base, lambda replays, seconds: session.replay(cubin, replays, seconds=seconds)

    def _emulate(self, replays: list[Replay], seconds: float) -> Replayed:
        lowered = emulator.lower(self.compiled.ptx, Cancellation())
        return emulator.replay(lowered, replays, seconds=seconds, threads=2, cancel=Cancellation())

    def run(
        self, *whats: int, n: int = N, seconds: float = 20, poison: int = 0xFF
    ) -> list[tuple[str, dict[str, Floats]]]:
        """How each plan ended ("ok", or the kind of fault), and its arrays."""
        addresses = {"x": DEVICE_BASE + GUARD_BYTES, "y": DEVICE_BASE + 5 * GUARD_BYTES}
        x = np.arange(N, dtype=np.float32)
        arrays = [
            Buffer("x", addresses["x"], x.tobytes(), 4 * N, True, True, poison),
            Buffer("y", addresses["y"], None, 4 * n, True, False, poison),
        ]
        with self.place() as (base, replay):
            plans = record(
                self.compiled,
                PARAMETERS,
                [{"what": what, "n": n, **addresses} for what in whats],
                layout=parameter_layout(self.compiled.ptx[0]),
                target=TARGETS[self.target],
                cancel=Cancellation(),
                base=base,
            )
            results = replay([Replay(plan, arrays, count=False) for plan in plans], seconds)
        return [
            (
                result.fault.kind if result.fault else result.status,
                {name: np.frombuffer(data, np.float32) for name, data in read.items()},
            )
            for result, read in results
        ]


@pytest.fixture
def bench(jail: None, backend: str) -> Bench:
    target = client.default_target(backend)
    compiled = toolchain.compile_candidate(SOURCE, target=target, cancel=Cancellation())
    assert compiled.ok, compiled.compilation.log
    return Bench(compiled, backend, target)


def test_kernels_symbols_and_copies(bench: Bench) -> None:
    results = bench.run(0, 1, 2, 3, 1)
    assert [said for said, _ in results] == ["ok"] * 5
    added, counted, looked, copied, again = (arrays["y"] for _, arrays in results)
    assert added.tolist() == [i + 1.5 for i in range(N)]
    assert counted[:2].tolist() == [5, 6]
    assert again[:2].tolist() == [5, 6]  # every plan has a module of its own
    assert looked[:4].tolist() == [1, 2, 3, 4]
    assert copied[:6].tolist() == [0, 0, 1, 2, 3, 4]
    assert copied[6:].tolist() == [i + 1 for i in range(6, N)]
    assert all(arrays["x"].tolist() == list(range(N)) for _, arrays in results)


def test_shared_memory_beyond_the_default(bench: Bench) -> None:
    [(said, arrays)] = bench.run(4)
    assert said == "ok"
    assert arrays["y"].tolist() == list(range(N))[::-1]


def test_a_barrier_of_the_whole_grid(bench: Bench) -> None:
    [(said, arrays)] = bench.run(5)
    assert said == "ok"
    assert arrays["y"].tolist() == [2 * (N - 1 - i) for i in range(N)]


def test_pointers_in_tables_lead_where_they_should(bench: Bench) -> None:
    [(said, arrays)] = bench.run(6)
    assert said == "ok"
    assert arrays["y"][:64].tolist() == [i + 100 * (i & 1) for i in range(64)]


@pytest.mark.parametrize("poison", [0xFF, 0x5A])
def test_what_nobody_wrote_is_poison(bench: Bench, poison: int) -> None:
    [(said, arrays)] = bench.run(1, poison=poison)
    assert said == "ok"
    assert set(arrays["y"][2:].tobytes()) == {poison}


def test_scratch_memory_starts_as_poison_or_is_a_fault(bench: Bench) -> None:
    [(said, arrays)] = bench.run(7, poison=0x5A)
    if bench.backend == "emulator":
        assert said == "uninitialised"
    else:
        assert arrays["y"][:16].tobytes() == np.full(16, np.frombuffer(b"\x5a" * 4, np.float32)).tobytes()


@pytest.mark.parametrize(
    ("what", "kind"),
    [
        (10, "out of bounds"),
        (11, "out of bounds"),
        (12, "out of bounds"),
        (13, "trap"),
        (14, "assert"),
        (15, "misaligned"),
        (16, "timeout"),
    ],
)
def test_what_goes_wrong_has_a_name_and_ends_the_run(bench: Bench, what: int, kind: str) -> None:
    seconds = 2.0 if kind == "timeout" else 20.0
    results = [said for said, _ in bench.run(0, what, 0, seconds=seconds)]
    assert results in (["ok", kind], [kind])  # a timeout may leave nothing of what went before
    [(after, arrays)] = bench.run(0)
    assert (after, arrays["y"][0]) == ("ok", 1.5)


def test_an_array_that_ends_with_its_page_is_guarded_too(bench: Bench) -> None:
    """On a card, the page behind it is not mapped."""
    size = ((2 << 20) - 5 * GUARD_BYTES) // 4
    assert [said for said, _ in bench.run(10, n=size)] == ["out of bounds"]


def test_a_plan_without_a_launch(bench: Bench) -> None:
    [(said, arrays)] = bench.run(99)
    assert said == "ok"
    assert set(arrays["y"].tobytes()) == {0xFF}


def test_plans_are_data() -> None:
    """Both backends read the same plan; nothing of either is in it."""
    assert set(LaunchPlan.model_fields) == {"operations"}
