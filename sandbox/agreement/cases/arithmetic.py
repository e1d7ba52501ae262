"""Numbers on the ordinary pipes (`kernels/arithmetic.cu`, `kernels/half.cu`)."""

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
    bfloats,
    case,
    floats,
    from_bfloats,
    integers,
    to_bfloats,
)

N, BLOCK = 1024, 128
GRID = N // BLOCK
QUARTER, HALF, EIGHTH = np.float32(0.25), np.float32(0.5), np.float32(0.125)


def cases() -> list[Case]:
    x, y = In("x", floats(N)), Out("y", N)
    return [
        case(
            "saxpy",
            GRID,
            BLOCK,
            x,
            InOut("y", floats(N, 1)),
            np.float32(0.75),
            N - 3,
            reference=_saxpy,
            chain=1,
        ),
        case("polynomial", GRID, BLOCK, x, y, reference=_y(lambda x: _horner(x, 12)), chain=12),
        case(
            "explicit_fma",
            GRID,
            BLOCK,
            x,
            In("w", floats(16, 2)),
            y,
            chain=16,
        ),
        case(
            "adds_and_products",
            GRID,
            BLOCK,
            x,
            y,
            reference=_y(lambda x: x * x + HALF * (x + np.float32(1))),
        ),
        case(
            "doubles",
            GRID,
            BLOCK,
            In("x", floats(N, dtype="float64")),
            Out("y", N, "float64"),
            reference=_y(lambda x: _horner(x, 8)),
            chain=8,
        ),
        case(
            "divide",
            GRID,
            BLOCK,
            x,
            y,
            reference=_y(lambda x: np.float32(1) / (x + np.float32(2))),
            expands="division",
        ),
        case(
            "root",
            GRID,
            BLOCK,
            x,
            y,
            reference=_y(lambda x: np.sqrt(x + np.float32(2))),
            expands="square root",
        ),
        case(
            "divide_doubles",
            GRID,
            BLOCK,
            In("x", floats(N, dtype="float64")),
            Out("y", N, "float64"),
            reference=_y(lambda x: x / (x + 3.0)),
            expands="division",
        ),
        case("transcendental", GRID, BLOCK, x, y, numbers="approximate", expands="exponential, sine"),
        case(
            "approximate",
            GRID,
            BLOCK,
            x,
            y,
            numbers="approximate",
            expands="fast exponential, division, root",
        ),
        case(
            "integers",
            GRID,
            BLOCK,
            In("x", integers(N, 1 << 31, 3, "uint32")),
            Out("y", N, "uint32"),
            reference=_y(_hashed),
        ),
        *(_divided(d) for d in (7, 1000)),
        case("conversions", GRID, BLOCK, x, y, reference=_y(_converted), chain=1),
        _stencil_line(),
        case(
            "stencil_plane",
            (3, 5),
            (16, 4),
            In("x", floats(45 * 19)),
            Out("y", 45 * 19),
            45,
            19,
            reference=_y(lambda x: _plane(x, 45, 19)),
            chain=5,
        ),
        *_halves(),
    ]


def _y(make: Callable[[Array], Array]) -> Callable[[Arrays], Arrays]:
    return lambda given: {"y": make(given["x"])}


def _saxpy(given: Arrays) -> Arrays:
    y = given["y"]
    y[: N - 3] = np.float32(0.75) * given["x"][: N - 3] + y[: N - 3]
    return {"y": y}


def _horner(x: Array, steps: int) -> Array:
    total = np.full_like(x, 0.5)
    for _ in range(steps):
        total = total * x + x.dtype.type(0.25)
    return total


def _hashed(v: Array) -> Array:
    for _ in range(4):
        high = (v.astype("uint64") * np.uint64(3266489917) >> np.uint64(32)).astype("uint32")
        v = (v ^ (v >> np.uint32(15))) * np.uint32(2246822519) + high
    return v


def _divided(d: int) -> Case:
    return case(
        "integer_division",
        GRID,
        BLOCK,
        In("x", integers(N, 1 << 20, 4)),
        Out("y", N, "int32"),
        d,
        name=f"integer_division_{d}",
        reference=_y(lambda x: (x // d + 100 * (x % d)).astype("int32")),
    )


def _converted(x: Array) -> Array:
    v = np.float32(100) * x
    return np.trunc(v) + np.trunc(np.abs(v))


def _stencil_line() -> Case:
    n = N - 1
    return case(
        "stencil_line",
        GRID,
        BLOCK,
        In("x", floats(n)),
        Out("y", n),
        n,
        reference=_y(_line),
        chain=3,
    )


def _line(x: Array) -> Array:
    y = x.copy()
    y[1:-1] = QUARTER * x[:-2] + HALF * x[1:-1] + QUARTER * x[2:]
    return y


def _plane(x: Array, width: int, height: int) -> Array:
    x = x.reshape(height, width)
    y = x.copy()
    around = x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1]
    y[1:-1, 1:-1] = HALF * x[1:-1, 1:-1] + EIGHTH * around
    return y.ravel()


# Half and bfloat16: sums and products of short numbers are exact in double, so one rounding is a fused one.


def _fused(a: Array, b: Array, c: Array) -> Array:
    exact: Array = a.astype("float64") * b.astype("float64") + c.astype("float64")
    return exact.astype("float16")


def _bfused(bits: Array) -> Array:
    v = from_bfloats(bits)
    exact = v.astype("float64") * v + v
    return to_bfloats(exact.astype("float32"))


def _halves() -> list[Case]:
    x = floats(N, 6, "float16")
    b = bfloats(floats(N, 7))
    short, long = In("x", x), In("x", floats(N))
    y, bits = Out("y", N, "float16"), Out("y", N, "uint16")
    half, quarter, one = np.float16(0.5), np.float16(0.25), np.float16(1)
    return [
        case(
            "half_fma",
            GRID,
            BLOCK,
            short,
            y,
            reference=_y(lambda v: _fused(v, v, _fused(v, np.full_like(v, half), v))),
        ),
        case("half_adds", GRID, BLOCK, short, y, reference=_y(lambda v: (v + v) * (v - one))),
        case(
            "half_pairs",
            GRID // 2,
            BLOCK,
            short,
            y,
            reference=_y(lambda v: _fused(v, v, v + quarter)),
        ),
        case(
            "half_to_float",
            GRID // 8,
            BLOCK,
            short,
            Out("y", N // 8),
            reference=_y(_summed),
            chain=8,
        ),
        case(
            "float_to_half",
            GRID,
            BLOCK,
            long,
            y,
            reference=_y(lambda v: (np.float32(3) * v).astype("float16")),
        ),
        case("bfloat_fma", GRID, BLOCK, In("x", b), bits, reference=_y(_bfused)),
        case("bfloat_pairs", GRID // 2, BLOCK, In("x", b), bits, reference=_y(_bfused)),
        case(
            "bfloat_to_float",
            GRID,
            BLOCK,
            In("x", b),
            Out("y", N),
            reference=_y(lambda v: np.float32(2) * from_bfloats(v)),
        ),
    ]


def _summed(v: Array) -> Array:
    rows = v.astype("float32").reshape(-1, 8)
    total = np.zeros(len(rows), "float32")
    for k in range(8):
        total = total + rows[:, k]
    return total
