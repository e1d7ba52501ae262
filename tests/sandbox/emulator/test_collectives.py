"""Shuffles, votes, matches and reductions of several groups of lanes in one warp, against Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from emulated import Machine, Out, compile_cuda, line_of

from sandbox.emulator.client import Mode

SOURCE = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
typedef unsigned u;
#define KERNEL(name) \
  static __device__ u name##_of(u a, u lane); \
  extern "C" __global__ void name(const u *in, u *out) { \
    u t = threadIdx.x; \
    out[t] = name##_of(in[t], t & 31); \
  } \
  static __device__ u name##_of(u a, u lane)

KERNEL(reduce_alike) { return __reduce_add_sync(__match_any_sync(~0u, a & 3), a); }
KERNEL(vote_alike) {
  u m = __match_any_sync(~0u, a & 3);
  return __any_sync(m, a >> 2 & 1) + 2 * __all_sync(m, a >> 3 & 1) + 4 * __ballot_sync(m, a >> 4 & 1);
}
KERNEL(halves) {
  u m = lane < 16 ? 0xffffu : 0xffff0000u;
  return __reduce_max_sync(m, a) + __shfl_xor_sync(m, a, 5);
}
KERNEL(leader) {
  u m = __match_any_sync(~0u, a & 3);
  return __shfl_sync(m, a, __ffs(m) - 1);
}
KERNEL(labelled) {
  auto g = cg::labeled_partition(cg::tiled_partition<32>(cg::this_thread_block()), (int)(a & 3));
  return cg::reduce(g, a, cg::plus<u>()) * 100 + g.thread_rank() * 10 + g.size();
}
KERNEL(coalesced) {
  if (!(a & 1)) return 0;
  auto g = cg::coalesced_threads();
  return g.size() * 100 + g.thread_rank() + (g.shfl(a, 0) & 7) + g.any(a >> 3 & 1) * 1000;
}
KERNEL(tiles) {
  auto g = cg::tiled_partition<8>(cg::this_thread_block());
  return g.ballot(a & 1) + g.match_any(a & 1) * 7;
}
KERNEL(tiles_apart) {
  auto g = cg::tiled_partition<4>(cg::this_thread_block());
  return lane / 4 & 1 ? g.shfl_xor(a, 1) + g.ballot(a & 1) : g.shfl_up(a, 1);
}
KERNEL(all_alike) {
  int same;
  u m = __match_all_sync(lane < 16 ? 0xffffu : 0xffff0000u, lane < 16 ? a & 0 : a, &same);
  return m + same;
}
KERNEL(some_have_left) {
  if (lane >= 24) return 7;
  for (int o = 4; o; o /= 2) a += __shfl_xor_sync(0xffffff, a, o);
  return a;
}
KERNEL(from_the_departed) {
  if (lane >= 24) return 7;
  return __shfl_down_sync(~0u, a & 0, 8);
}
KERNEL(not_named) { return __shfl_sync(0xffff, a, 0); }  // sixteen lanes too many
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, jail: None) -> Machine:
    return Machine(compile_cuda(SOURCE, tmp_path_factory.mktemp("collectives")))


def alike(lane: int, a: list[int]) -> list[int]:
    return [i for i in range(32) if a[i] & 3 == a[lane] & 3]


def vote_alike(lane: int, a: list[int]) -> int:
    group = alike(lane, a)
    votes = sum((a[i] >> 4 & 1) << i for i in group)
    return any(a[i] >> 2 & 1 for i in group) + 2 * all(a[i] >> 3 & 1 for i in group) + 4 * votes


def labelled(lane: int, a: list[int]) -> int:
    group = alike(lane, a)
    return sum(a[i] for i in group) * 100 + group.index(lane) * 10 + len(group)


def coalesced(lane: int, a: list[int]) -> int:
    group = [i for i in range(32) if a[i] & 1]
    if lane not in group:
        return 0
    return len(group) * 100 + group.index(lane) + (a[group[0]] & 7) + 1000 * any(a[i] >> 3 & 1 for i in group)


def ballot(lane: int, a: list[int], size: int) -> int:
    first = lane // size * size
    return sum((a[i] & 1) << (i - first) for i in range(first, first + size))


def tiles(lane: int, a: list[int]) -> int:
    ones = ballot(lane, a, 8)
    return ones + 7 * (ones if a[lane] & 1 else ones ^ 0xFF)


def tiles_apart(lane: int, a: list[int]) -> int:
    if lane // 4 & 1:
        return a[lane ^ 1] + ballot(lane, a, 4)
    return a[lane - 1] if lane % 4 else a[lane]


MEANINGS: dict[str, Callable[[int, list[int]], int]] = {
    "reduce_alike": lambda lane, a: sum(a[i] for i in alike(lane, a)),
    "vote_alike": vote_alike,
    "halves": lambda lane, a: max(a[lane // 16 * 16 : lane // 16 * 16 + 16]) + a[lane ^ 5],
    "leader": lambda lane, a: a[alike(lane, a)[0]],
    "labelled": labelled,
    "coalesced": coalesced,
    "tiles": tiles,
    "tiles_apart": tiles_apart,
    "all_alike": lambda lane, a: 0xFFFF + 1 if lane < 16 else 0,
    "some_have_left": lambda lane, a: 7 if lane >= 24 else sum(a[lane // 8 * 8 : lane // 8 * 8 + 8]),
}


@pytest.mark.parametrize("kernel", MEANINGS)
def test_groups_of_lanes(machine: Machine, kernel: str) -> None:
    given = np.random.default_rng(3).integers(0, 1 << 32, 128, dtype=np.uint32)
    run = machine.run(kernel, 1, 128, given, Out(128, "uint32"))
    assert run.result.status == "ok", run.result
    rows = [[int(value) for value in row] for row in given.reshape(4, 32)]
    wanted = [MEANINGS[kernel](lane, row) & 0xFFFFFFFF for row in rows for lane in range(32)]
    np.testing.assert_array_equal(run.arrays["a1"], np.array(wanted, np.uint32))


def test_what_a_departed_lane_holds_is_undefined(machine: Machine) -> None:
    """All lanes shuffle zeros, so a zero from a lane that has left would hide the mistake."""
    run = machine.run("from_the_departed", 1, 32, np.zeros(32, np.uint32), Out(32, "uint32"))
    values = run.arrays["a1"]
    assert not values[:16].any()
    assert (np.abs(values[16:24].view(np.float32)) > 1e38).all()


def test_lanes_that_the_mask_does_not_name(machine: Machine) -> None:
    fault = machine.run("not_named", 1, 32, np.zeros(32, np.uint32), Out(32, "uint32")).fault
    assert (fault.kind, fault.line) == ("barrier", line_of(SOURCE, "sixteen lanes too many"))
    assert fault.message == ("a warp shuffle is executed by 16 lanes that its member mask does not name")


def test_lanes_that_come_late_to_a_vote_in_a_loop_are_waited_for_every_time(tmp_path: Path) -> None:
    """Once the late lane completes the vote; the next time round it must be waited for again."""
    source = r"""
    extern "C" __global__ void rounds(const int *work, int *out, int n) {
        int lane = threadIdx.x, sum = 0, round = 0;
        for (int v = lane; __any_sync(~0u, v < n); v += 32, round++) {
            if (v < n && work[v] > 0)
                for (int i = 0; i < work[v]; i++) sum += (sum ^ i) & 7;
            unsigned ballot = __ballot_sync(~0u, v < n && work[v] > 0);
            while (ballot) {
                int who = __ffs(ballot) - 1;
                ballot &= ballot - 1;
                int count = __shfl_sync(~0u, v < n ? work[v] : 0, who);
                for (int i = lane; __any_sync(~0u, i < count); i += 32)
                    if (i < count) sum += i % 3 ? i : -i;
            }
        }
        out[lane] = sum * 1000 + round;
    }
    """
    work = (np.arange(200) * 37 % 61 * (np.arange(200) % 5 == 3)).astype(np.int32)
    ran = Machine(compile_cuda(source, tmp_path)).run("rounds", 1, 32, work, Out(32, "int32"), 200)
    assert ran.result.status == "ok", ran.result
    expected = []
    for lane in range(32):
        total = 0
        for v in range(lane, 224, 32):
            if v < 200:
                for i in range(int(work[v])):
                    total += (total ^ i) & 7
            for who in range(32):
                other = v - lane + who
                if other < 200 and work[other] > 0:
                    total += sum(i if i % 3 else -i for i in range(lane, int(work[other]), 32))
        expected.append(total * 1000 + 7)
    assert ran.arrays["a1"].tolist() == expected


LATE = r"""
__device__ __noinline__ int from(unsigned mask, int value, int lane) {
  return __shfl_sync(mask, value, lane);
}
extern "C" __global__ void late(int* out, unsigned mask, int rounds) {
  int i = threadIdx.x;
  unsigned sum = i;
  if (i < 8)
    for (int k = 0; k < rounds * (i + 1); k++) sum = sum * 1664525u + out[k & 31];
  if (i % 3 == 0) mask |= sum & 0;
  int first = __shfl_sync(mask, i, (i + 1) & 31), second;
  if (i >= 24)
    for (int k = 0; k < rounds * (i - 20); k++) sum = sum * 1664525u + out[k & 31];
  second = from(mask, first, (i + 31) & 31);
  out[i] = 100 * first + second + (sum == 12345u);
}
"""


@pytest.mark.parametrize("options", [["-lineinfo"], ["-G"]])
@pytest.mark.parametrize("mode", ["checked", "plain"])
def test_members_that_no_constant_names_are_waited_for(
    jail: None, tmp_path: Path, options: list[str], mode: Mode
) -> None:
    """However long they compute on another way; at the instruction, and at a call that leads to it."""
    machine = Machine(compile_cuda(LATE, tmp_path, options=options), mode=mode)
    run = machine.run("late", 1, 32, np.zeros(32, "int32"), np.uint32(0xFFFFFFFF), 3000)
    assert run.result.status == "ok", run.result
    lanes = np.arange(32)
    assert (run.arrays["a0"] == 100 * ((lanes + 1) % 32) + lanes).all()
