"""Global, constant and local memory (`kernels/access.cu`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sandbox.agreement.case import (
    Array,
    Arrays,
    Case,
    In,
    InOut,
    Out,
    case,
    floats,
    integers,
    permutation,
)

N, BLOCK = 2048, 128
GRID = N // BLOCK
COEFFICIENTS = np.tile(
    np.array(
        [0.5, 0.25, -0.5, 0.125, 1, -1, 0.75, 0.0625, -0.5, 0.5, 0.25, -0.25, 0.375, 0, 1, -0.125], "float32"
    ),
    2,
)


def _y(make: Callable[[Array], Array]) -> Callable[[Arrays], Arrays]:
    """The output y as a function of x."""
    return lambda given: {"y": make(given["x"])}


def _placed(at: Array) -> Callable[[Arrays], Arrays]:
    """x, element i at at[i] of y."""

    def reference(given: Arrays) -> Arrays:
        y = given["y"]
        y[at] = given["x"][: len(at)]
        return {"y": y}

    return reference


def cases() -> list[Case]:
    x, y, i = In("x", floats(N)), Out("y", N), np.arange(N)
    return [
        case("copy_coalesced", GRID, BLOCK, x, y, N, reference=_y(lambda x: x)),
        case(
            "copy_coalesced",
            17,
            BLOCK,
            In("x", floats(2053)),
            Out("y", 2053),
            2053,
            name="copy_odd_size",
            reference=_y(lambda x: x),
        ),
        *(_strided(stride) for stride in (2, 3, 4, 8, 32)),
        *(_scattered(stride) for stride in (2, 5, 8, 32)),
        *(_shifted(shift) for shift in (1, 4, 8, 13)),
        case(
            "store_misaligned",
            GRID,
            BLOCK,
            x,
            InOut("y", floats(N + 8, 3)),
            3,
            reference=_placed(i + 3),
        ),
        case("copy_reversed", GRID, BLOCK, x, y, N, reference=_y(lambda x: x[::-1])),
        _indexed("gather", "gather_permuted", permutation(N)),
        _indexed("gather", "gather_near", (i // 8 * 8 + permutation(8)[i % 8]).astype("int32")),
        case(
            "scatter",
            GRID,
            BLOCK,
            x,
            In("index", permutation(N, 5)),
            y,
            reference=lambda given: {"y": given["x"][np.argsort(given["index"])]},
        ),
        case(
            "gather_bytes",
            GRID,
            BLOCK,
            In("x", integers(N, 256, dtype="uint8")),
            In("index", integers(N, N, 2)),
            Out("y", N, "uint8"),
            reference=lambda given: {"y": given["x"][given["index"]]},
        ),
        case("broadcast", GRID, BLOCK, x, y, reference=_y(lambda x: x[i // BLOCK])),
        *(_groups(lanes) for lanes in (2, 16)),
        case(
            "structs_in_array",
            GRID,
            BLOCK,
            In("x", floats(4 * N)),
            y,
            reference=_y(lambda x: x[0::4] + x[2::4]),
        ),
        _copied("copy_bytes", integers(N, 256, dtype="uint8")),
        _copied("copy_shorts", integers(N, 1 << 15, dtype="int16")),
        _copied("copy_doubles", floats(N, dtype="float64")),
        _copied("copy_vectors2", floats(2 * N)),
        _copied("copy_vectors4", floats(4 * N)),
        case(
            "load_vectors4_strided",
            4,
            BLOCK,
            In("x", floats(4 * 4 * BLOCK * 3)),
            Out("y", 4 * 4 * BLOCK),
            3,
            reference=_y(lambda x: x.reshape(-1, 4)[::3].ravel()),
        ),
        case(
            "transpose_naive",
            (2, 8),
            (32, 8),
            In("x", floats(64 * 64)),
            Out("y", 64 * 64),
            64,
            reference=_y(lambda x: x.reshape(64, 64).T.ravel()),
        ),
        case(
            "grid_stride",
            3,
            BLOCK,
            In("x", floats(2053)),
            Out("y", 2053),
            2053,
            reference=_y(lambda x: np.float32(2) * x),
        ),
        case("every_other_lane", GRID, BLOCK, x, InOut("y", floats(N, 4)), reference=_even),
        case("read_only", GRID, BLOCK, x, y, reference=_y(lambda x: x + x[i ^ 1])),
        case("volatile_copy", GRID, BLOCK, x, y, reference=_y(lambda x: x)),
        case(
            "rectangle",
            (3, 5),
            (16, 4),
            In("x", floats(33 * 17)),
            Out("y", 33 * 17),
            33,
            17,
            reference=_y(lambda x: x),
        ),
        case("constant_uniform", GRID, BLOCK, x, y, reference=_y(_horner), chain=16),
        case(
            "constant_by_lane", GRID, BLOCK, x, y, reference=_y(lambda x: x + COEFFICIENTS[i % 32]), chain=1
        ),
        case(
            "local_array", GRID, BLOCK, In("x", integers(N, 1000)), Out("y", N, "int32"), reference=_y(_local)
        ),
        case(
            "spills", 2, 256, In("x", integers(512, 100)), Out("y", 512, "int32"), 3, reference=_y(_spilled)
        ),
    ]


def _strided(stride: int) -> Case:
    return case(
        "load_strided",
        4,
        BLOCK,
        In("x", floats(512 * stride)),
        Out("y", 512),
        stride,
        name=f"load_strided_{stride}",
        reference=_y(lambda x: x[::stride]),
    )


def _scattered(stride: int) -> Case:
    return case(
        "store_strided",
        4,
        BLOCK,
        In("x", floats(512)),
        InOut("y", floats(512 * stride, 1)),
        stride,
        name=f"store_strided_{stride}",
        reference=_placed(np.arange(512) * stride),
    )


def _shifted(shift: int) -> Case:
    return case(
        "load_misaligned",
        GRID,
        BLOCK,
        In("x", floats(N + 16)),
        Out("y", N),
        shift,
        name=f"load_misaligned_{shift}",
        reference=_y(lambda x: x[shift : shift + N]),
    )


def _indexed(kernel: str, name: str, index: Array) -> Case:
    return case(
        kernel,
        GRID,
        BLOCK,
        In("x", floats(N)),
        In("index", index),
        Out("y", N),
        name=name,
        reference=lambda given: {"y": given["x"][given["index"]]},
    )


def _groups(lanes: int) -> Case:
    return case(
        "broadcast_groups",
        GRID,
        BLOCK,
        In("x", floats(N)),
        Out("y", N),
        lanes,
        name=f"broadcast_groups_{lanes}",
        reference=_y(lambda x: x[np.arange(N) // lanes]),
    )


def _copied(kernel: str, x: Array) -> Case:
    return case(kernel, GRID, BLOCK, In("x", x), Out("y", x.size, str(x.dtype)), reference=_y(lambda x: x))


def _even(given: Arrays) -> Arrays:
    return {"y": np.where(np.arange(N) % 2 == 0, given["x"], given["y"])}


def _horner(x: Array) -> Array:
    total = np.zeros_like(x)
    for k in range(16):
        total = total * x + COEFFICIENTS[k]
    return total


def _local(index: Array) -> Array:
    rows = np.arange(N)
    mine = rows[:, None] * np.arange(16)[None, :]
    total = np.zeros(N, "int64")
    for k in range(4):
        at = (index + k) % 16
        total += mine[rows, at]
        mine[rows, at] = total
    return total.astype("int32")


def _spilled(x: Array) -> Array:
    a = [x.astype("uint32") + np.uint32(k * k) for k in range(64)]
    for _ in range(3):
        for k in range(64):
            a[k] = a[k] * np.uint32(3) + a[(k + 17) % 64]
    total: Array = np.bitwise_xor.reduce(a)
    return total.view("int32")
