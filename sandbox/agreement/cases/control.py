"""Divergence, early exit, barriers (`kernels/control.cu`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sandbox.agreement.case import Array, Arrays, Case, In, InOut, Out, case, integers

N, BLOCK = 1024, 128
GRID = N // BLOCK
THREAD = np.arange(N) % BLOCK


def cases() -> list[Case]:
    x, y = In("x", integers(N, 100, 1)), Out("y", N, "int32")
    return [
        case("odd_and_even", GRID, BLOCK, x, y, reference=_y(_odd_and_even)),
        case("four_ways", GRID, BLOCK, x, y, reference=_y(_four_ways)),
        case("by_warp", GRID, BLOCK, x, y, reference=_y(_by_warp)),
        case("nested", GRID, BLOCK, x, y, reference=_y(_nested)),
        case(
            "uneven_lanes",
            GRID,
            BLOCK,
            In("x", integers(N, 20, 2)),
            Out("y", N, "uint32"),
            reference=_y(_uneven_lanes),
        ),
        case("collatz", GRID, BLOCK, In("x", integers(N, 60, 3) + 1), y, reference=_y(_collatz)),
        *(_early_exit(last) for last in (1, 7, 16)),
        case(
            "search",
            2,
            BLOCK,
            In("x", np.arange(0, 128, 2, dtype="int32")),
            In("wanted", integers(256, 128, 4)),
            Out("y", 256, "int32"),
            64,
            reference=lambda given: {"y": np.where(given["wanted"] % 2, -1, given["wanted"] // 2)},
        ),
        case(
            "selected",
            GRID,
            BLOCK,
            In("x", (integers(N, 200, 5) - 100).astype("float32")),
            Out("y", N),
            reference=_y(lambda x: np.where(x > 0, x, np.float32(-2) * x)),
        ),
        case("uneven_warps", GRID, BLOCK, x, y, reference=_y(_uneven_warps)),
        case(
            "copy_coalesced",
            3,
            40,
            In("x", integers(100, 9, 6).astype("float32")),
            Out("y", 100),
            100,
            name="partial_warps",
            reference=_y(lambda x: x),
        ),
        case("barriers", GRID, BLOCK, x, y, reference=_y(_barriers)),
        case("barrier_votes", GRID, BLOCK, x, y, reference=_y(_barrier_votes)),
    ]


def _y(make: Callable[[Array], Array]) -> Callable[[Arrays], Arrays]:
    return lambda given: {"y": make(given["x"])}


def _mix(v: Array, times: int, factor: int, shift: int) -> Array:
    """v = v * factor ^ v >> shift, some times, as C's int does it."""
    for _ in range(times):
        v = v * np.int32(factor) ^ (v >> shift)
    return v


def _odd_and_even(x: Array) -> Array:
    odd, even = x, x
    for _ in range(8):
        odd, even = odd * np.int32(3) + (odd >> 1), even * np.int32(5) - (even >> 2)
    return np.where(np.arange(N) % 2, odd, even)


def _chosen(ways: Sequence[Array], which: Array) -> Array:
    return np.choose(which, list(ways))


def _four_ways(x: Array) -> Array:
    return _chosen([_mix(x, 6 + k, 3 + 2 * k, 3 + k) for k in range(4)], THREAD % 4)


def _by_warp(x: Array) -> Array:
    return np.where(THREAD // 32 % 2, _mix(x, 8, 3, 1), _mix(x, 8, 5, 2))


def _nested(x: Array) -> Array:
    first = _mix(x, 1, 3, 1)
    second = _mix(first, 5, 5, 2)
    third = _mix(second, 5, 7, 3)
    inner = np.where(THREAD & 4, third, second)
    return np.where(THREAD & 1, np.where(THREAD & 2, inner, first), x)


def _uneven_lanes(rounds: Array) -> Array:
    v = np.arange(N, dtype="uint32")
    for k in range(20):
        v = np.where(k < rounds, v * np.uint32(1664525) + np.uint32(1013904223), v)
    return v


def _collatz(x: Array) -> Array:
    def steps(v: int) -> int:
        count = 0
        while v != 1:
            v, count = 3 * v + 1 if v % 2 else v // 2, count + 1
        return count

    return np.array([steps(int(v)) for v in x], "int32")


def _early_exit(last: int) -> Case:
    def reference(given: Arrays) -> Arrays:
        return {"y": np.where(last > THREAD % 32, _mix(given["x"], 10, 3, 7), given["y"])}

    x, y = In("x", integers(N, 100, 1)), InOut("y", integers(N, 5, 8))
    return case("early_exit", GRID, BLOCK, x, y, last, name=f"early_exit_{last}", reference=reference)


def _uneven_warps(x: Array) -> Array:
    return _chosen([_mix(x, 4 * warp, 3, 7) for warp in range(4)], THREAD // 32)


def _barriers(x: Array) -> Array:
    v = x.reshape(GRID, BLOCK)
    for k in range(8):
        v = v + np.roll(v, -1 - k, axis=1)
    return v.ravel()


def _barrier_votes(x: Array) -> Array:
    blocks = x.reshape(GRID, BLOCK)
    votes = (blocks > 0).sum(1) + 1000 * (blocks > 90).any(1)
    return np.repeat(votes, BLOCK).astype("int32")
