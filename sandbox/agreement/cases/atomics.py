"""Atomics, reductions, shuffles (`kernels/atomics.cu`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sandbox.agreement.case import Array, Arrays, Case, In, InOut, Out, case, floats, integers

N, BLOCK = 1024, 128
GRID = N // BLOCK


def cases() -> list[Case]:
    x = In("x", integers(N, 100, 1))
    y = Out("y", N, "int32")
    return [
        case(
            "atomic_spread",
            GRID,
            BLOCK,
            x,
            InOut("y", integers(N, 9, 2)),
            reference=lambda given: {"y": given["x"] + given["y"]},
        ),
        case(
            "atomic_one_address",
            GRID,
            BLOCK,
            x,
            InOut("y", np.zeros(1, "int32")),
            reference=_y(lambda x: np.array([np.where(x % 2, 3, 5).sum()], "int32")),
        ),
        *(_by_index(bins) for bins in (4, 64)),
        case(
            "atomic_tickets",
            GRID,
            BLOCK,
            InOut("counter", np.zeros(2, "int32")),
            y,
            reference=lambda given: {
                "counter": np.array([N // 2, N // 2], "int32"),
                "y": np.ones(N, "int32"),
            },
        ),
        case(
            "atomic_extremes",
            GRID,
            BLOCK,
            x,
            InOut("y", np.array([50, 50], "int32")),
            reference=_y(lambda x: np.array([x.max(), x.min()], "int32")),
        ),
        case(
            "atomic_bits",
            GRID,
            BLOCK,
            In("x", integers(N, 256, 3)),
            InOut("y", np.zeros(12, "uint32")),
            reference=_y(_bits),
        ),
        case(
            "atomic_compare",
            1,  # one warp: how often lanes try again must not depend on when other warps come
            32,
            InOut("y", np.zeros(8, "int32")),
            reference=lambda given: {"y": np.full(8, 3 * 32 // 8, "int32")},
        ),
        case(
            "atomic_floats",
            GRID,
            BLOCK,
            In("x", floats(N)),
            InOut("y", np.zeros(4, "float32")),
            reference=_y(lambda x: x.astype("float64").reshape(-1, 4).sum(0).astype("float32")),
            numbers="unordered",
            chain=N // 4,
        ),
        case(
            "histogram_shared",
            2,
            256,
            In("x", integers(3001, 256, 4, "uint8")),
            InOut("y", np.zeros(256, "int32")),
            3001,
            reference=_y(lambda x: np.bincount(x, minlength=256).astype("int32")),
        ),
        case(
            "atomic_shared_one",
            GRID,
            BLOCK,
            x,
            InOut("y", np.zeros(GRID + 1, "int32")),
            reference=_y(lambda x: np.append(x.reshape(GRID, BLOCK).sum(1), 0).astype("int32")),
        ),
        *(_reduced(kernel) for kernel in ("reduce_tree", "reduce_interleaved", "reduce_shuffle")),
        case(
            "scan_shuffle",
            GRID,
            BLOCK,
            x,
            y,
            reference=_y(lambda x: _warps(x).cumsum(1).astype("int32").ravel()),
        ),
        case(
            "butterfly",
            GRID,
            BLOCK,
            In("x", floats(N)),
            Out("y", N),
            reference=_y(lambda x: np.repeat(_warps(x).max(1), 32)),
        ),
        case(
            "shuffle_index",
            GRID,
            BLOCK,
            x,
            In("index", integers(N, 32, 5)),
            y,
            reference=_shuffled,
        ),
        case("votes", GRID, BLOCK, x, Out("y", N, "uint32"), reference=_y(_votes)),
        case(
            "matches",
            GRID,
            BLOCK,
            In("x", integers(N, 6, 6)),
            Out("y", N, "uint32"),
            reference=_y(_matches),
        ),
        case(
            "warp_sums",
            GRID,
            BLOCK,
            x,
            y,
            reference=_y(lambda x: np.repeat(_warps(x).sum(1) ^ _warps(x).max(1), 32).astype("int32")),
        ),
    ]


def _y(make: Callable[[Array], Array]) -> Callable[[Arrays], Arrays]:
    return lambda given: {"y": make(given["x"])}


def _warps(x: Array) -> Array:
    return x.reshape(-1, 32)


def _by_index(bins: int) -> Case:
    return case(
        "atomic_by_index",
        GRID,
        BLOCK,
        In("x", integers(N, bins, 7)),
        InOut("y", np.zeros(bins, "int32")),
        name=f"atomic_by_index_{bins}",
        reference=_y(lambda x: np.bincount(x, minlength=bins).astype("int32")),
    )


def _reduced(kernel: str) -> Case:
    """Sums of 256 floats, in the kernel's own order."""

    def reference(given: Arrays) -> Arrays:
        v: Array = given["x"].reshape(-1, 256)
        if kernel == "reduce_tree":
            while v.shape[1] > 1:
                half = v.shape[1] // 2
                v = v[:, :half] + v[:, half:]
        elif kernel == "reduce_interleaved":
            while v.shape[1] > 1:
                v = v[:, 0::2] + v[:, 1::2]
        else:
            v = v.reshape(-1, 8, 32)
            for axis in (2, 1):
                while v.shape[axis] > 1:
                    first, second = np.split(v, 2, axis=axis)
                    v = first + second
        return {"y": v.ravel()}

    return case(kernel, 4, 256, In("x", floats(1024)), Out("y", 4), reference=reference)


def _bits(x: Array) -> Array:
    y = np.zeros(12, "uint32")
    np.bitwise_or.at(y, x // 32, np.uint32(1) << (x % 32).astype("uint32"))
    i = np.arange(N)
    np.bitwise_xor.at(y, 8 + i % 4, np.uint32(1) << (i % 32).astype("uint32"))
    return y


def _shuffled(given: Arrays) -> Arrays:
    x, index, lane = given["x"], given["index"], np.arange(N) % 32
    start = np.arange(N) - lane
    return {"y": x[start + index] + x[start + lane // 8 * 8 + index % 8]}


def _votes(x: Array) -> Array:
    above = ((_warps(x) > 50) << np.arange(32, dtype="uint64")).sum(1).astype("uint64")
    more = (_warps(x) > 50).sum(1) + 1000 * (_warps(x) == 7).any(1) + 5000 * (_warps(x) >= 0).all(1)
    return np.repeat((above + more.astype("uint64")).astype("uint32"), 32)


def _matches(x: Array) -> Array:
    same = _warps(x)[:, :, None] == _warps(x)[:, None, :]
    bits: Array = (same << np.arange(32, dtype="uint64")).sum(2)
    return bits.astype("uint32").ravel()
