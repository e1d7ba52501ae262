"""Matrix products, on the ordinary pipes and on tensor cores (`kernels/arithmetic.cu`, `kernels/tensor.cu`).

Tensor cores sum in an order and a width of their own: those references are the exact products, and what a
machine may differ from them is `bounds`' concern.
"""

from __future__ import annotations

import numpy as np

from sandbox.agreement.case import Array, Arrays, Case, In, Out, bfloats, case, floats, from_bfloats, integers


def cases() -> list[Case]:
    return [
        _product("product_naive", "product_naive", 32, 32, 32, (4, 4), (8, 8)),
        _product("product_naive", "product_odd", 33, 17, 29, (3, 9), (8, 4)),
        case(
            "product_tiled",
            (3, 3),
            (16, 16),
            In("a", floats(48 * 48, 1)),
            In("b", floats(48 * 48, 2)),
            Out("c", 48 * 48),
            48,
            reference=lambda given: {"c": _in_order(given, 48, 48, 48)},
            chain=48,
        ),
        case(
            "product_registers",
            (2, 2),
            (8, 8),
            In("a", floats(32 * 32, 1)),
            In("b", floats(32 * 32, 2)),
            Out("c", 32 * 32),
            32,
            reference=lambda given: {"c": _in_order(given, 32, 32, 32)},
            chain=32,
        ),
        case(
            "matrix_vector",
            5,
            128,
            In("a", floats(19 * 77, 1)),
            In("x", floats(77, 2)),
            Out("y", 19),
            19,
            77,
            reference=_rows,
            chain=8,
        ),
        *(_tiles(kernel) for kernel in ("wmma_half", "wmma_half_sums", "wmma_bfloat")),
        _fragments("mma_half", 16, floats(256, 1, "float16"), floats(128, 2, "float16")),
        _fragments("mma_bfloat", 16, bfloats(floats(256, 1)), bfloats(floats(128, 2))),
        _fragments("mma_tf32", 8, _tf32(floats(128, 1)), _tf32(floats(64, 2))),
        _fragments("mma_bytes", 32, integers(512, 256, 1, "int8"), integers(256, 256, 2, "int8")),
        case(
            "load_matrices",
            1,
            32,
            In("x", integers(128, 1 << 31, 3, "uint32")),
            Out("y", 128, "uint32"),
            reference=lambda given: {"y": given["x"].reshape(4, 32).T.ravel()},
        ),
    ]


def _in_order(given: Arrays, m: int, n: int, k: int) -> Array:
    """A product whose sums grow term by term, without contraction."""
    a, b = given["a"].reshape(m, k), given["b"].reshape(k, n)
    total = np.zeros((m, n), a.dtype)
    for i in range(k):
        total = total + a[:, i : i + 1] * b[i : i + 1, :]
    return total.ravel()


def _product(
    kernel: str, name: str, m: int, n: int, k: int, grid: tuple[int, int], block: tuple[int, int]
) -> Case:
    return case(
        kernel,
        grid,
        block,
        In("a", floats(m * k, 1)),
        In("b", floats(k * n, 2)),
        Out("c", m * n),
        m,
        n,
        k,
        name=name,
        reference=lambda given: {"c": _in_order(given, m, n, k)},
        chain=k,
    )


def _rows(given: Arrays) -> Arrays:
    """A warp sums a row: each lane its share in order, then halves."""
    a, x = given["a"].reshape(19, 77), given["x"]
    products = np.zeros((19, 96), "float32")
    products[:, :77] = a * x
    lanes = np.zeros((19, 32), "float32")
    for start in range(0, 96, 32):
        lanes = lanes + products[:, start : start + 32]
    for step in (16, 8, 4, 2, 1):
        lanes = lanes[:, :step] + lanes[:, step : 2 * step]
    return {"y": lanes.ravel()}


# Tensor cores -------------------------------------------------------------------------------------------


def _exact(bits: Array) -> Array:
    """Inputs of a tensor core as double."""
    match str(bits.dtype):
        case "uint16":
            return from_bfloats(bits).astype("float64")
        case "uint32":
            return bits.view("float32").astype("float64")
    return bits.astype("float64")


def _tf32(values: Array) -> Array:
    return values.view("uint32") & np.uint32(0xFFFFE000)


def _tiles(kernel: str) -> Case:
    n, bfloat = 48, "bfloat" in kernel
    a, b = (floats(n * n, seed) for seed in (1, 2))
    a, b = (bfloats(a), bfloats(b)) if bfloat else (a.astype("float16"), b.astype("float16"))
    kind = "float16" if kernel.endswith("sums") else "float32"

    def reference(given: Arrays) -> Arrays:
        left, right = (_exact(given[name]).reshape(n, n) for name in ("a", "b"))
        return {"c": (left @ right).astype(kind).ravel()}

    return case(
        kernel,
        (3, 3),
        32,
        In("a", a),
        In("b", b),
        Out("c", n * n, kind),
        n,
        reference=reference,
        numbers="tensor",
        chain=n,
    )


def _fragments(kernel: str, k: int, a: Array, b: Array) -> Case:
    """16 x k times k x 8; b lies column by column."""
    whole = a.dtype == "int8"
    kind = "int32" if whole else "float32"

    def reference(given: Arrays) -> Arrays:
        left, right = _exact(given["a"]).reshape(16, k), _exact(given["b"]).reshape(8, k)
        return {"c": (left @ right.T).astype(kind).ravel()}

    return case(
        kernel,
        1,
        32,
        In("a", a),
        In("b", b),
        Out("c", 128, kind),
        reference=reference,
        numbers="exact" if whole else "tensor",
        chain=k,
    )
