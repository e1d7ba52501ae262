"""Where lanes of one store meet at one address, the one that a GPU keeps is kept: every width and space.

It is a race by the language, and the checks say so; programs count on it all the same.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda

from sandbox.agreement.cases.winners import winner
from sandbox.emulator.client import Mode

# Type -> its element, and how many.
TYPES = {
    "char": ("u1", 1),
    "uchar4": ("u1", 4),
    "short": ("u2", 1),
    "short2": ("u2", 2),
    "short4": ("u2", 4),
    "float": ("u4", 1),
    "float2": ("u4", 2),
    "float4": ("u4", 4),
    "double": ("u8", 1),
    "double2": ("u8", 2),
}
# A store that all lanes do is lowered otherwise than one that has a condition.
WAYS = ("all_global", "some_global", "all_shared", "some_shared", "some_generic", "one_place")
_KERNELS = r"""
#define GIVEN_T const int *place, unsigned active, T *y
__device__ T value_T(unsigned lane) {
  T made;
  for (int k = 0; k < sizeof(T) / sizeof(E); ++k) reinterpret_cast<E *>(&made)[k] = lane + 1 + 40 * k;
  return made;
}
extern "C" __global__ void all_global_T(GIVEN_T) { y[place[threadIdx.x]] = value_T(threadIdx.x); }
extern "C" __global__ void some_global_T(GIVEN_T) {
  if (active >> threadIdx.x & 1) y[place[threadIdx.x]] = value_T(threadIdx.x);
}
extern "C" __global__ void all_shared_T(GIVEN_T) {
  __shared__ T tile[64];
  tile[threadIdx.x] = tile[threadIdx.x + 32] = y[threadIdx.x];
  __syncwarp();
  tile[place[threadIdx.x]] = value_T(threadIdx.x);
  __syncwarp();
  y[threadIdx.x] = tile[threadIdx.x];
  y[threadIdx.x + 32] = tile[threadIdx.x + 32];
}
extern "C" __global__ void some_shared_T(GIVEN_T) {
  __shared__ T tile[64];
  tile[threadIdx.x] = tile[threadIdx.x + 32] = y[threadIdx.x];
  __syncwarp();
  if (active >> threadIdx.x & 1) tile[place[threadIdx.x]] = value_T(threadIdx.x);
  __syncwarp();
  y[threadIdx.x] = tile[threadIdx.x];
  y[threadIdx.x + 32] = tile[threadIdx.x + 32];
}
// Places below 32 in global memory, the others in shared memory, by one instruction.
extern "C" __global__ void some_generic_T(GIVEN_T) {
  __shared__ T tile[64];
  tile[threadIdx.x + 32] = y[threadIdx.x + 32];
  __syncwarp();
  int at = place[threadIdx.x];
  T *to = at < 32 ? y + at : tile + at;
  if (active >> threadIdx.x & 1) *to = value_T(threadIdx.x);
  __syncwarp();
  y[threadIdx.x + 32] = tile[threadIdx.x + 32];
}
extern "C" __global__ void one_place_T(GIVEN_T) {
  T mine = value_T(threadIdx.x);
  if (active >> threadIdx.x & 1) y[place[0]] = mine;
}
"""
_ELEMENTS = {
    "u1": "unsigned char",
    "u2": "unsigned short",
    "u4": "unsigned",
    "u8": "unsigned long long",
}
SOURCE = "#include <cuda_runtime.h>\n" + "".join(
    re.sub(r"\bE\b", _ELEMENTS[kind], re.sub(r"\bT\b|(?<=_)T\b", name, _KERNELS))
    for name, (kind, _) in TYPES.items()
)
_LANES = np.arange(32)
PLACES = {
    "one": np.full(32, 37),
    "pairs": _LANES // 2,
    "rows of four": _LANES % 4,
    "rows of eight": _LANES % 8 + 32,
    "rows of sixteen": _LANES % 16,
    "rows of sixteen, half apart": _LANES - _LANES // 16 * 8,
    "the second half backwards": np.where(_LANES < 16, _LANES, 31 - _LANES),
    "any": np.random.default_rng(3).integers(0, 64, 32) // 4 * 3,
    "none": _LANES * 5 % 32,
    "a row": _LANES + 20,
}
MASKS = [0xFFFFFFFF, 0x9669C33A, 0xFFFF0000, 0x00FF00F0, 0x80000001, 0x00000400, 0]


@pytest.fixture(scope="module", params=["checked", "plain"])
def machine(jail: None, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Machine:
    mode: Mode = request.param
    return Machine(compile_cuda(SOURCE, tmp_path_factory.mktemp("winners")), mode=mode)


@pytest.mark.parametrize("name", TYPES)
def test_the_lane_that_a_gpu_keeps_is_kept(machine: Machine, name: str) -> None:
    kind, count = TYPES[name]
    width = count * np.dtype(kind).itemsize
    values = _LANES[:, None] + 1 + 40 * np.arange(count)
    prepared, expected = [], []
    for way in WAYS:
        for pattern, place in PLACES.items():
            for mask in MASKS:
                active = 0xFFFFFFFF if way.startswith("all") else mask
                if way.startswith("all") and mask != active:
                    continue
                places = np.full(32, place[0]) if way == "one_place" else place
                want = np.full((64, count), 200).astype(kind)
                for at in range(64):
                    if (lane := winner(width, places, active, at)) is not None:
                        want[at] = values[lane]
                prepared.append(
                    machine.prepare(
                        f"{way}_{name}",
                        1,
                        32,
                        place.astype("i4"),
                        np.uint32(active),
                        np.full((64, count), 200).astype(kind),
                        keep_going=True,
                    )
                )
                expected.append((way, pattern, hex(active), want))
    runs = machine.run_all(prepared, threads=1)
    assert len(runs) == len(expected)
    for run, (way, pattern, active_text, want) in zip(runs, expected, strict=True):
        assert run.result.status == "ok", (way, pattern, active_text, run.result)
        found = run.arrays["a2"].reshape(want.shape)
        assert (found == want).all(), (way, pattern, active_text)


SAME = r"""
extern "C" __global__ void halves(int *y) {
  __shared__ int tile[32];
  int at = threadIdx.x % 16;
  tile[at] = at * 3 + 1;
  __syncwarp();
  y[at] = tile[at];
}
extern "C" __global__ void anywhere(int *y) {
  __shared__ int tile[32];
  int at = threadIdx.x * 7 % 16;
  tile[at] = at * 3 + 1;
  __syncwarp();
  y[at] = tile[at];
}
"""


@pytest.mark.parametrize("kernel", ["halves", "anywhere"])
def test_lanes_that_store_the_same_are_no_error(jail: None, tmp_path: Path, kernel: str) -> None:
    run = Machine(compile_cuda(SAME, tmp_path)).run(kernel, 1, 32, Out(16, "int32"))
    assert run.result.status == "ok", run.result
    assert run.arrays["a0"].tolist() == [at * 3 + 1 for at in range(16)]
