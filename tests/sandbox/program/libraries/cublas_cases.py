"""Every routine of cuBLAS that is offered, against NumPy in double precision. Runs in the jail."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from device_library import (
    SENTINEL,
    TYPES,
    Array,
    Matrix,
    Vector,
    device_array,
    load,
    main,
    need,
    pointer,
    random,
    runtime,
    same,
)

N, T, C = 0, 1, 2
LOWER, UPPER = 0, 1
LEFT, RIGHT = 0, 1
SHAPES = [(1, 1, 1), (5, 3, 4), (17, 33, 9), (40, 24, 64)]
SCALARS = [(1.0, 0.0), (0.7, -1.3), (1.0, 1.0), (0.0, 0.5), (0.0, 0.0)]
NAN = float("nan")

library = load()
handle = ctypes.c_void_p()
rng = np.random.default_rng(7)


def start() -> None:
    need(library.cublasCreate_v2(ctypes.byref(handle)))


def call(name: str, *arguments: Any) -> None:
    """Python's integers are C's int, floats do not occur: scalars are arrays of one element."""
    words = [pointer(one) if isinstance(one, np.ndarray) else one for one in arguments]
    need(getattr(library, f"cublas{name}")(handle, *words))


def scalar(value: complex, dtype: Any) -> Array:
    return np.array([value if np.issubdtype(dtype, np.complexfloating) else complex(value).real], dtype)


def op(operation: int, matrix: Array) -> Array:
    return [matrix, matrix.T, matrix.conj().T][operation]


def wide(values: Array) -> Array:
    return values.astype(np.complex128)


def product(a: Array, b: Array) -> Array:
    """Not by the BLAS that is tested."""
    return np.asarray(np.einsum("ij,jk->ik", wide(a), wide(b)))


def types(letters: str = "SDCZ") -> Iterator[tuple[str, Any]]:
    return ((letter, TYPES[letter]) for letter in letters)


def check(result: Matrix | Vector, want: Array, terms: int) -> None:
    want = want if np.issubdtype(result.value.dtype, np.complexfloating) else want.real
    same(result.value, want, terms)
    assert result.untouched()


def gemm() -> None:
    for letter, dtype in types():
        for (m, n, k), a_op, b_op in itertools.product(SHAPES, (N, T, C), (N, T, C)):
            alpha, beta = SCALARS[(m + a_op + 3 * b_op) % len(SCALARS)]
            a = Matrix(random(rng, (m, k) if a_op == N else (k, m), dtype), 70)
            b = Matrix(random(rng, (k, n) if b_op == N else (n, k), dtype), 71)
            before = random(rng, (m, n), dtype) if beta else np.full((m, n), NAN, dtype)
            c = Matrix(before, 72)
            by, keep = scalar(alpha, dtype), scalar(beta, dtype)
            call(f"{letter}gemm_v2", a_op, b_op, m, n, k, by, a.at, 70, b.at, 71, keep, c.at, 72)
            want = alpha * product(op(a_op, a.value), op(b_op, b.value))
            check(c, want + beta * wide(before) if beta else want, k)


def gemm_without_terms() -> None:
    """k = 0 leaves beta C; alpha = 0 does not look at A and B."""
    c = Matrix(np.ones((3, 2), np.float32), 4)
    by, keep = scalar(0, np.float32), scalar(2, np.float32)
    nothing = ctypes.c_void_p()
    call("Sgemm_v2", N, N, 3, 2, 0, scalar(1, np.float32), nothing, 3, nothing, 1, keep, c.at, 4)
    check(c, np.full((3, 2), 2.0), 1)
    call("Sgemm_v2", N, N, 3, 2, 5, by, nothing, 3, nothing, 5, keep, c.at, 4)
    check(c, np.full((3, 2), 4.0), 1)


def wrong_arguments() -> None:
    a = Matrix(np.ones((4, 4), np.float32))
    one = scalar(1, np.float32)

    def status(*words: Any) -> int:
        return int(library.cublasSgemm_v2(*[pointer(w) if isinstance(w, np.ndarray) else w for w in words]))

    good = (handle, N, N, 4, 4, 4, one, a.at, 4, a.at, 4, one, a.at, 4)
    for at, bad in ((1, 7), (3, -1), (6, ctypes.c_void_p()), (8, 3), (10, 3), (13, 3)):
        assert status(*good[:at], bad, *good[at + 1 :]) == 7, at
    assert status(ctypes.c_void_p(), *good[1:]) == 1
    assert status(ctypes.c_void_p(64), *good[1:]) == 1


def scalars_on_the_device() -> None:
    need(library.cublasSetPointerMode_v2(handle, 1))
    mode = ctypes.c_int()
    need(library.cublasGetPointerMode_v2(handle, ctypes.byref(mode)))
    assert mode.value == 1
    try:
        a, b = (Matrix(random(rng, (6, 6), np.float64)) for _ in range(2))
        c = Matrix(np.zeros((6, 6)))
        by, keep = device_array(np.array([2.5])), device_array(np.array([0.0]))
        call("Dgemm_v2", N, N, 6, 6, 6, by, a.at, 6, b.at, 6, keep, c.at, 6)
        check(c, 2.5 * product(a.value, b.value), 6)
        result = device_array(np.zeros(1))
        call("Ddot_v2", 36, a.at, 1, b.at, 1, result)
        same(result, np.array([np.sum(a.value * b.value)]), 36)
        place = device_array(np.zeros(1, np.int32))
        call("Idamax_v2", 36, a.at, 1, place)
        assert place[0] == 1 + np.argmax(np.abs(a.whole.reshape(-1, order="F")))
    finally:
        need(library.cublasSetPointerMode_v2(handle, 0))


def places(whole: Array, step: int, count: int) -> Array:
    """A list on the device of the addresses of every `step`th element."""
    return device_array(np.arange(count, dtype=np.uint64) * (step * whole.itemsize) + whole.ctypes.data)


def scalars_in_the_wrong_place() -> None:
    a, by = Matrix(np.ones((2, 2))), device_array(np.ones(1))
    words = (N, N, 2, 2, 2, pointer(by), a.at, 2, a.at, 2, pointer(by), a.at, 2)
    assert library.cublasDgemm_v2(handle, *words) == 7
    assert library.cublasDdot_v2(handle, 4, a.at, 1, a.at, 1, pointer(by)) == 7


def batches(listed: bool) -> None:
    for letter, dtype in types():
        m, n, k, count = 5, 4, 3, 7
        a, b, c = (
            random(rng, (m, k * count), dtype),
            random(rng, (k, n * count), dtype),
            random(rng, (m, n * count), dtype),
        )
        da, db, dc = Matrix(a, 8), Matrix(b, 6), Matrix(c, 7)
        by, keep = scalar(1.5, dtype), scalar(0.5, dtype)
        if listed:
            pa, pb, pc = (
                places(one.whole, step, count) for one, step in ((da, 8 * k), (db, 6 * n), (dc, 7 * n))
            )
            call(f"{letter}gemmBatched", N, N, m, n, k, by, pa, 8, pb, 6, keep, pc, 7, count)
        else:
            steps = [ctypes.c_longlong(one) for one in (8 * k, 6 * n, 7 * n)]
            words = (by, da.at, 8, steps[0], db.at, 6, steps[1], keep, dc.at, 7, steps[2], count)
            call(f"{letter}gemmStridedBatched", N, N, m, n, k, *words)
        want = np.hstack(
            [1.5 * product(a[:, i * k : i * k + k], b[:, i * n : i * n + n]) for i in range(count)]
        )
        check(dc, want + 0.5 * wide(c), k)


def narrow(values: Array, kind: str) -> tuple[Array, Array]:
    """What is stored, and what it means."""
    if kind == "bf16":
        bits = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return bits, widen(bits)
    stored = np.rint(values * 100).astype(np.int8) if kind == "int8" else values.astype(np.float16)
    return stored, stored.astype(np.float64)


def widen(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def narrow_types() -> None:
    """Type of A and B, of C, of the sums, of the scalars: cudaDataType and cublasComputeType_t."""
    r32, r16, r8i, r32i, bf16 = 0, 2, 3, 10, 14
    m, n, k = 9, 7, 12
    numbers = {"half": r16, "bf16": bf16, "int8": r8i}
    results: dict[int, Any] = {r32: np.float32, r16: np.float16, bf16: np.uint16, r32i: np.int32}
    for kind, c_type, compute, scale in (
        ("half", r16, 64, np.float16),
        ("half", r16, 68, np.float32),
        ("half", r32, 68, np.float32),
        ("bf16", bf16, 68, np.float32),
        ("bf16", r32, 68, np.float32),
        ("int8", r32, 68, np.float32),
        ("int8", r32i, 72, np.int32),
    ):
        a, a_means = narrow(random(rng, (k, m), np.float64), kind)
        b, b_means = narrow(random(rng, (k, n), np.float64), kind)
        da, db, holder = Matrix(a, 13), Matrix(b, 14), Matrix(np.zeros((m, n), results[c_type]), 15)
        by, keep = np.array([2], scale), np.array([0], scale)
        dtype = numbers[kind]
        words = (by, da.at, dtype, 13, db.at, dtype, 14, keep, holder.at, c_type, 15, compute, -1)
        call("GemmEx", T, N, m, n, k, *words)
        assert holder.untouched()
        want = 2 * np.einsum("ki,kj->ij", a_means, b_means)
        got = widen(holder.value) if c_type == bf16 else holder.value.astype(np.float64)
        allowed = {r32: 1e-6, r16: 2e-3, bf16: 1e-2, r32i: 0}[c_type] * max(1, np.max(np.abs(want)))
        assert np.max(np.abs(got - want)) <= allowed, (kind, c_type, compute)


def half() -> None:
    m, n, k, count = 4, 5, 6, 3
    a, b = (random(rng, shape, np.float64).astype(np.float16) for shape in ((m, k * count), (k, n * count)))
    da, db = Matrix(a), Matrix(b)
    one, none = np.array([1], np.float16), np.array([0], np.float16)
    want = np.hstack(
        [a[:, i * k : i * k + k].astype(float) @ b[:, i * n : i * n + n].astype(float) for i in range(count)]
    )
    c = Matrix(np.full((m, n * count), NAN, np.float16))
    call("Hgemm", N, N, m, n, k, one, da.at, m, db.at, k, none, c.at, m)
    assert np.max(np.abs(c.value[:, :n] - want[:, :n])) < 4e-3
    steps = [ctypes.c_longlong(one) for one in (m * k, k * n, m * n)]
    words = (da.at, m, steps[0], db.at, k, steps[1], none, c.at, m, steps[2], count)
    call("HgemmStridedBatched", N, N, m, n, k, one, *words)
    assert np.max(np.abs(c.value - want)) < 4e-3


def not_offered_types() -> None:
    one = np.ones(1, np.float32)
    a = Matrix(np.ones((2, 2), np.float32))
    words = (N, N, 2, 2, 2, pointer(one), a.at, 28, 2, a.at, 28, 2, pointer(one), a.at, 0, 2, 68, -1)
    assert library.cublasGemmEx(handle, *words) == 15


def vectors() -> None:
    for (letter, dtype), (incx, incy), n in itertools.product(
        types(), ((1, 1), (2, 3), (-1, 2), (3, -2)), (1, 2, 33)
    ):
        x, y = random(rng, n, dtype), random(rng, n, dtype)
        factor = scalar(0.7 - 0.2j, dtype)
        dx, dy = Vector(x, incx), Vector(y, incy)
        call(f"{letter}axpy_v2", n, factor, dx.at, incx, dy.at, incy)
        check(dy, wide(y) + factor[0] * wide(x), 1)
        call(f"{letter}copy_v2", n, dx.at, incx, dy.at, incy)
        check(dy, wide(x), 1)
        dy = Vector(y, incy)
        call(f"{letter}swap_v2", n, dx.at, incx, dy.at, incy)
        check(dx, wide(y), 1)
        check(dy, wide(x), 1)
        if incx > 0:
            call(f"{letter}scal_v2", n, factor, dx.at, incx)
            check(dx, factor[0] * wide(y), 1)
        rotation_of(letter, dtype, x, y, incx, incy)
        result = np.zeros(1, dtype)
        dx, dy = Vector(x, incx), Vector(y, incy)
        for name in ("dot",) if letter in "SD" else ("dotu", "dotc"):
            call(f"{letter}{name}_v2", n, dx.at, incx, dy.at, incy, result)
            left = wide(x).conj() if name == "dotc" else wide(x)
            same(result, np.array([np.sum(left * wide(y))]), n)


def rotation_of(letter: str, dtype: Any, x: Array, y: Array, incx: int, incy: int) -> None:
    real = np.zeros(1, dtype).real.dtype
    c, s = np.array([0.6], real), scalar(0.48 + 0.64j, dtype)
    dx, dy = Vector(x, incx), Vector(y, incy)
    call(f"{letter}rot_v2", len(x), dx.at, incx, dy.at, incy, c, s)
    check(dx, c[0] * wide(x) + s[0] * wide(y), 1)
    check(dy, c[0] * wide(y) - np.conj(s[0]) * wide(x), 1)


def vectors_by_real_numbers() -> None:
    for letter, prefix, rotate, real in (("C", "Cs", "Csrot", np.float32), ("Z", "Zd", "Zdrot", np.float64)):
        x, y = random(rng, 9, TYPES[letter]), random(rng, 9, TYPES[letter])
        dx, dy = Vector(x, 2), Vector(y, 1)
        call(f"{prefix}scal_v2", 9, np.array([-0.5], real), dx.at, 2)
        check(dx, -0.5 * wide(x), 1)
        dx = Vector(x, 2)
        call(f"{rotate}_v2", 9, dx.at, 2, dy.at, 1, np.array([0.6], real), np.array([0.8], real))
        check(dx, 0.6 * wide(x) + 0.8 * wide(y), 1)
        check(dy, 0.6 * wide(y) - 0.8 * wide(x), 1)


def magnitudes() -> None:
    for letter, dtype in types():
        real = np.zeros(1, dtype).real.dtype
        prefix = {"S": "S", "D": "D", "C": "Sc", "Z": "Dz"}[letter]
        for n, step in itertools.product((1, 2, 50), (1, 3)):
            x = random(rng, n, dtype)
            dx, result, place = Vector(x, step), np.zeros(1, real), np.zeros(1, np.int32)
            sizes = np.abs(x.real) + np.abs(x.imag)
            call(f"{prefix}asum_v2", n, dx.at, step, result)
            same(result, np.array([np.sum(sizes, dtype=np.float64)]), n)
            call(f"{prefix}nrm2_v2", n, dx.at, step, result)
            same(result, np.array([np.sqrt(np.sum(np.abs(wide(x)) ** 2))]), n)
            call(f"I{letter.lower()}amax_v2", n, dx.at, step, place)
            assert place[0] == np.argmax(sizes) + 1
            call(f"I{letter.lower()}amin_v2", n, dx.at, step, place)
            assert place[0] == np.argmin(sizes) + 1
        call(f"I{letter.lower()}amax_v2", 0, ctypes.c_void_p(), 1, place)
        assert place[0] == 0
    big, result64 = Vector(np.full(4, 1e200)), np.zeros(1)
    call("Dnrm2_v2", 4, big.at, 1, result64)
    assert result64[0] == 2e200


def vectors_of_any_type() -> None:
    """cudaDataType of the elements, of what is computed in, and of a norm."""
    for kind, number, compute, of_norm in (
        (np.float16, 2, 0, 2),
        ("bf16", 14, 0, 14),
        (np.float32, 0, 0, 0),
        (np.float64, 1, 1, 1),
        (np.complex64, 4, 4, 0),
        (np.complex128, 5, 5, 1),
    ):
        for n, incx, incy in ((1, 1, 1), (37, 2, -3), (20, 1, 2)):
            raw = [random(rng, n, np.complex128 if number in (4, 5) else np.float64) for _ in range(2)]
            stored = [narrow(one, "bf16")[0] if kind == "bf16" else one.astype(kind) for one in raw]
            x, y = (wide(widen(one) if kind == "bf16" else one) for one in stored)
            dx, dy = Vector(stored[0], incx), Vector(stored[1], incy)
            scalar_type = {0: np.float32, 1: np.float64, 4: np.complex64, 5: np.complex128}[compute]
            allowed = {2: 4e-3, 14: 2e-2, 0: 1e-5, 4: 1e-5}.get(number, 1e-13)

            def near(got: Array, want: Array, kind: Any = kind, allowed: float = allowed) -> None:
                means = widen(got) if kind == "bf16" else got
                assert np.max(np.abs(means - want)) <= allowed * max(1, np.max(np.abs(want))), kind

            result = np.zeros(1, stored[0].dtype)
            words = (n, dx.at, number, incx, dy.at, number, incy, result, number, compute)
            call("DotEx", *words)
            near(result, np.array([np.sum(x * y)]))
            call("DotcEx", *words)
            near(result, np.array([np.sum(x.conj() * y)]))
            norm = np.zeros(1, stored[0].real.dtype)
            call("Nrm2Ex", n, dx.at, number, incx, norm, of_norm, 0 if compute in (0, 4) else 1)
            near(norm, np.array([np.sqrt(np.sum(np.abs(x) ** 2))]))
            by = scalar(0.5 - 0.25j, scalar_type)
            call("AxpyEx", n, by, compute, dx.at, number, incx, dy.at, number, incy, compute)
            near(dy.value, y + by[0] * x)
            call("ScalEx", n, by, compute, dx.at, number, incx, compute)
            near(dx.value, by[0] * x)
            assert dx.untouched()
            assert dy.untouched()


def gemv() -> None:
    for (letter, dtype), operation, (incx, incy) in itertools.product(
        types(), (N, T, C), ((1, 1), (2, -3), (-1, 2))
    ):
        for (m, n), (alpha, beta) in zip(((1, 1), (7, 5), (30, 41), (5, 9), (2, 2)), SCALARS, strict=True):
            a = Matrix(random(rng, (m, n), dtype), 45)
            rows, columns = (m, n) if operation == N else (n, m)
            x = random(rng, columns, dtype)
            y = random(rng, rows, dtype) if beta else np.full(rows, NAN, dtype)
            dx, dy = Vector(x, incx), Vector(y, incy)
            by, keep = scalar(alpha, dtype), scalar(beta, dtype)
            call(f"{letter}gemv_v2", operation, m, n, by, a.at, 45, dx.at, incx, keep, dy.at, incy)
            want = alpha * product(op(operation, a.value), x[:, None])[:, 0]
            check(dy, want + beta * wide(y) if beta else want, columns)


def gemv_batches() -> None:
    for letter, dtype in types():
        m, n, count = 4, 6, 5
        a, x, y = Matrix(random(rng, (m, n * count), dtype), 5), Vector(random(rng, n * count, dtype)), None
        before = random(rng, m * count, dtype)
        by, keep = scalar(2, dtype), scalar(-1, dtype)
        want = np.concatenate(
            [
                2 * product(a.value[:, i * n : i * n + n], x.value[i * n : i * n + n, None])[:, 0]
                for i in range(count)
            ]
        ) - wide(before)
        y = Vector(before)
        steps = [ctypes.c_longlong(one) for one in (5 * n, n, m)]
        words = (a.at, 5, steps[0], x.at, 1, steps[1], keep, y.at, 1, steps[2], count)
        call(f"{letter}gemvStridedBatched", N, m, n, by, *words)
        check(y, want, n)
        y = Vector(before)
        lists = [places(one.whole, step, count) for one, step in ((a, 5 * n), (x, n), (y, m))]
        call(f"{letter}gemvBatched", N, m, n, by, lists[0], 5, lists[1], 1, keep, lists[2], 1, count)
        check(y, want, n)


def half_of(full: Array, fill: int) -> Array:
    """One triangle; what is not to be read is no number."""
    keep = np.tril(np.ones(full.shape, bool)) if fill == LOWER else np.triu(np.ones(full.shape, bool))
    return np.where(keep, full, NAN).astype(full.dtype)


def symmetric(n: int, dtype: Any, hermitian: bool) -> Array:
    full = random(rng, (n, n), dtype)
    full = full + (full.conj().T if hermitian else full.T)
    return np.asarray(full, dtype)


def symmetric_cases() -> Iterator[tuple[str, Any, bool, str]]:
    for letter, dtype in types():
        yield letter, dtype, False, "sy"
        if letter in "CZ":
            yield letter, dtype, True, "he"


def symmetric_by_vector() -> None:
    for (letter, dtype, hermitian, name), fill, step in itertools.product(
        symmetric_cases(), (LOWER, UPPER), (1, -2)
    ):
        n = 11
        full = symmetric(n, dtype, hermitian)
        a, x, y = Matrix(half_of(full, fill), 13), random(rng, n, dtype), random(rng, n, dtype)
        dx, dy = Vector(x, step), Vector(y, 2)
        call(
            f"{letter}{name}mv_v2",
            fill,
            n,
            scalar(1.5, dtype),
            a.at,
            13,
            dx.at,
            step,
            scalar(0.5, dtype),
            dy.at,
            2,
        )
        check(dy, 1.5 * product(full, x[:, None])[:, 0] + 0.5 * wide(y), n)


def symmetric_updates() -> None:
    for (letter, dtype, hermitian, name), fill in itertools.product(symmetric_cases(), (LOWER, UPPER)):
        n, k = 9, 5
        full = symmetric(n, dtype, hermitian)
        real = np.zeros(1, dtype).real.dtype if hermitian else dtype
        x, y = random(rng, n, dtype), random(rng, n, dtype)
        turned = (lambda v: wide(v).conj()) if hermitian else wide
        dx, dy, a = Vector(x, 2), Vector(y, -1), Matrix(half_of(full, fill), 10)
        call(f"{letter}{name}r_v2", fill, n, scalar(0.5, real), dx.at, 2, a.at, 10)
        check_half(a, wide(full) + 0.5 * np.outer(wide(x), turned(x)), fill, n)
        a = Matrix(half_of(full, fill), 10)
        factor = scalar(0.5 + 0.25j, dtype)
        second = np.conj(factor[0]) if hermitian else factor[0]
        call(f"{letter}{name}r2_v2", fill, n, factor, dx.at, 2, dy.at, -1, a.at, 10)
        both = factor[0] * np.outer(wide(x), turned(y)) + second * np.outer(wide(y), turned(x))
        check_half(a, wide(full) + both, fill, n)
        for transposed in (False, True):
            operation = N if not transposed else C if hermitian else T
            shape = (k, n) if transposed else (n, k)
            g, h = Matrix(random(rng, shape, dtype), 12), Matrix(random(rng, shape, dtype), 12)
            p, q = (wide(op(operation, one.value)) for one in (g, h))
            for beta in (0.0, 2.0):
                c = Matrix(half_of(full, fill) if beta else np.full((n, n), NAN, dtype), 10)
                words = (scalar(1.5, real), g.at, 12, scalar(beta, real), c.at, 10)
                call(f"{letter}{name}rk_v2", fill, operation, n, k, *words)
                check_half(c, 1.5 * product(p, turned(p).T) + beta * wide(full), fill, n)
                c = Matrix(half_of(full, fill) if beta else np.full((n, n), NAN, dtype), 10)
                pair = (factor, g.at, 12, h.at, 12, scalar(beta, real), c.at, 10)
                call(f"{letter}{name}r2k_v2", fill, operation, n, k, *pair)
                want = factor[0] * product(p, turned(q).T) + second * product(q, turned(p).T)
                check_half(c, want + beta * wide(full), fill, n)


def check_half(result: Matrix, want: Array, fill: int, terms: int) -> None:
    triangle = np.tril if fill == LOWER else np.triu
    want = want if np.issubdtype(result.value.dtype, np.complexfloating) else want.real
    same(triangle(np.nan_to_num(result.value)), triangle(want), terms)
    outside = np.triu(result.value, 1) if fill == LOWER else np.tril(result.value, -1)
    assert np.all(np.isnan(result.value) == np.isnan(outside)), "the other triangle was touched"
    assert result.untouched()


def symmetric_products() -> None:
    for (letter, dtype, hermitian, name), fill, side in itertools.product(
        symmetric_cases(), (LOWER, UPPER), (LEFT, RIGHT)
    ):
        m, n = 8, 6
        full = symmetric(m if side == LEFT else n, dtype, hermitian)
        a, b, before = (
            Matrix(half_of(full, fill), 9),
            Matrix(random(rng, (m, n), dtype), 10),
            random(rng, (m, n), dtype),
        )
        c = Matrix(before, 11)
        words = (scalar(2, dtype), a.at, 9, b.at, 10, scalar(-1, dtype), c.at, 11)
        call(f"{letter}{name}mm_v2", side, fill, m, n, *words)
        want = product(full, b.value) if side == LEFT else product(b.value, full)
        check(c, 2 * want - wide(before), 8)


def outer_products() -> None:
    for letter, dtype in types():
        for name in ("ger",) if letter in "SD" else ("geru", "gerc"):
            a, x, y = random(rng, (7, 4), dtype), random(rng, 7, dtype), random(rng, 4, dtype)
            da, dx, dy = Matrix(a, 9), Vector(x, -2), Vector(y, 3)
            call(f"{letter}{name}_v2", 7, 4, scalar(0.5, dtype), dx.at, -2, dy.at, 3, da.at, 9)
            right = wide(y).conj() if name == "gerc" else wide(y)
            check(da, wide(a) + 0.5 * np.outer(wide(x), right), 2)


def triangle_of(n: int, dtype: Any, fill: int, unit: bool) -> tuple[Array, Array]:
    """What is stored, with no numbers where nothing may be read, and what it means. Easy to solve with."""
    values = random(rng, (n, n), dtype) / n + np.eye(n, dtype=dtype) * 2
    stored = half_of(values.astype(dtype), fill)
    means = np.tril(values) if fill == LOWER else np.triu(values)
    if unit:
        np.fill_diagonal(stored, NAN)
        np.fill_diagonal(means, 1)
    return stored, means


def triangular() -> None:
    for (letter, dtype), fill, operation, unit in itertools.product(
        types(), (LOWER, UPPER), (N, T, C), (0, 1)
    ):
        n = 10
        stored, means = triangle_of(n, dtype, fill, bool(unit))
        a, x = Matrix(stored, 12), random(rng, n, dtype)
        dx = Vector(x, -2)
        call(f"{letter}trmv_v2", fill, operation, unit, n, a.at, 12, dx.at, -2)
        check(dx, product(op(operation, means), x[:, None])[:, 0], n)
        dx = Vector(x, 2)
        call(f"{letter}trsv_v2", fill, operation, unit, n, a.at, 12, dx.at, 2)
        check(dx, np.linalg.solve(wide(op(operation, means)), wide(x)), n)
        for side in (LEFT, RIGHT):
            m, columns = (n, 7) if side == LEFT else (7, n)
            b = random(rng, (m, columns), dtype)
            matrix = wide(op(operation, means))
            solved = (
                np.linalg.solve(matrix, wide(b)) if side == LEFT else np.linalg.solve(matrix.T, wide(b).T).T
            )
            multiplied = product(matrix, b) if side == LEFT else product(b, matrix)
            db = Matrix(b, 13)
            words = (side, fill, operation, unit, m, columns, scalar(3, dtype), a.at, 12)
            call(f"{letter}trsm_v2", *words, db.at, 13)
            check(db, 3 * solved, n)
            db, dc = Matrix(b, 13), Matrix(np.full((m, columns), NAN, dtype), 14)
            call(f"{letter}trmm_v2", *words, db.at, 13, dc.at, 14)
            check(dc, 3 * multiplied, n)
            call(f"{letter}trmm_v2", *words, db.at, 13, db.at, 13)
            check(db, 3 * multiplied, n)


def nothing_times_a_triangle() -> None:
    b = Matrix(np.full((3, 3), NAN, np.float32))
    a = ctypes.c_void_p()
    call("Strsm_v2", LEFT, LOWER, N, 0, 3, 3, scalar(0, np.float32), a, 3, b.at, 3)
    check(b, np.zeros((3, 3)), 1)


def sums_of_matrices() -> None:
    for (letter, dtype), a_op, b_op in itertools.product(types(), (N, T, C), (N, T, C)):
        m, n = 5, 8
        a = Matrix(random(rng, (m, n) if a_op == N else (n, m), dtype), 9)
        b = Matrix(random(rng, (m, n) if b_op == N else (n, m), dtype), 10)
        c = Matrix(np.full((m, n), NAN, dtype), 6)
        words = (scalar(2, dtype), a.at, 9, scalar(-0.5, dtype), b.at, 10, c.at, 6)
        call(f"{letter}geam", a_op, b_op, m, n, *words)
        check(c, 2 * wide(op(a_op, a.value)) - 0.5 * wide(op(b_op, b.value)), 2)
        x = random(rng, max(m, n), dtype)
        for side in (LEFT, RIGHT):
            a, used = Matrix(random(rng, (m, n), dtype), 7), x[: m if side == LEFT else n]
            dx = Vector(used, -2)
            call(f"{letter}dgmm", side, m, n, a.at, 7, dx.at, -2, c.at, 6)
            check(c, wide(a.value) * (used[:, None] if side == LEFT else used[None, :]), 1)


def listed(matrices: list[Matrix]) -> Array:
    return device_array(np.array([one.at.value for one in matrices], np.uint64))


def systems() -> None:
    for letter, dtype in types():
        n, count, sides = 8, 4, 3
        originals = [np.asarray(random(rng, (n, n), dtype) + np.eye(n), dtype) for _ in range(count)]
        for pivoting in (True, False):
            factors = [Matrix(one, 9) for one in originals]
            pivots = device_array(np.zeros(n * count, np.int32)) if pivoting else None
            infos = device_array(np.full(count, 5, np.int32))
            given = pivots if pivots is not None else ctypes.c_void_p()
            call(f"{letter}getrfBatched", n, listed(factors), 9, given, infos, count)
            assert list(infos) == [0] * count
            inverses = [Matrix(np.full((n, n), NAN, dtype), 10) for _ in range(count)]
            call(f"{letter}getriBatched", n, listed(factors), 9, given, listed(inverses), 10, infos, count)
            for original, inverse in zip(originals, inverses, strict=True):
                check(inverse, np.linalg.inv(wide(original)), 1000)
            rights = [random(rng, (n, sides), dtype) for _ in range(count)]
            solutions = [Matrix(one, 11) for one in rights]
            info = np.zeros(1, np.int32)
            words = (listed(factors), 9, given, listed(solutions), 11, info, count)
            call(f"{letter}getrsBatched", T, n, sides, *words)
            for original, right, solution in zip(originals, rights, solutions, strict=True):
                check(solution, np.linalg.solve(wide(original).T, wide(right)), 1000)
        inverses = [Matrix(np.zeros((n, n), dtype)) for _ in range(count)]
        matrices = [Matrix(one) for one in originals]
        call(f"{letter}matinvBatched", n, listed(matrices), n, listed(inverses), n, infos, count)
        for original, inverse in zip(originals, inverses, strict=True):
            check(inverse, np.linalg.inv(wide(original)), 1000)
        stored, means = triangle_of(n, dtype, UPPER, False)
        rights_of = [Matrix(random(rng, (n, 2), dtype)) for _ in range(count)]
        want = [np.linalg.solve(wide(means), wide(one.value)) for one in rights_of]
        triangles = [Matrix(stored, 9)] * count
        words = (LEFT, UPPER, N, 0, n, 2, scalar(1, dtype), listed(triangles), 9, listed(rights_of), n, count)
        call(f"{letter}trsmBatched", *words)
        for one, solved in zip(rights_of, want, strict=True):
            check(one, solved, n)


def singular_systems() -> None:
    singular = Matrix(np.array([[1.0, 2.0], [2.0, 4.0]]))
    infos, pivots = device_array(np.zeros(1, np.int32)), device_array(np.zeros(2, np.int32))
    call("DgetrfBatched", 2, listed([singular]), 2, pivots, infos, 1)
    assert infos[0] == 2
    singular = Matrix(np.array([[0.0, 2.0], [2.0, 4.0]]))
    call("DgetrfBatched", 2, listed([singular]), 2, ctypes.c_void_p(), infos, 1)
    assert infos[0] == 1


def copies() -> None:
    host = np.asfortranarray(rng.uniform(size=(6, 5)).astype(np.float32))
    target = device_array(np.full((9, 5), SENTINEL, np.float32))
    need(library.cublasSetMatrix(6, 5, 4, pointer(host), 6, pointer(target), 9))
    assert np.array_equal(target[:6], host)
    assert np.all(target[6:] == SENTINEL)
    back = np.zeros((7, 5), np.float32, order="F")
    need(library.cublasGetMatrix(6, 5, 4, pointer(target), 9, pointer(back), 7))
    assert np.array_equal(back[:6], host)
    assert np.all(back[6:] == 0)
    vector = device_array(np.zeros(20, np.float64))
    values = np.arange(10, dtype=np.float64)
    need(library.cublasSetVector(10, 8, pointer(values), 1, pointer(vector), 2))
    assert np.array_equal(vector[::2], values)
    got = np.zeros(10)
    need(library.cublasGetVector(10, 8, pointer(vector), 2, pointer(got), 1))
    assert np.array_equal(got, values)
    assert library.cublasSetVector(10, 8, pointer(values), 0, pointer(vector), 2) == 7
    stream, other = ctypes.c_void_p(), ctypes.c_void_p()
    need(runtime.cudaStreamCreate(ctypes.byref(stream)))
    need(library.cublasSetStream_v2(handle, stream))
    need(library.cublasGetStream_v2(handle, ctypes.byref(other)))
    assert other.value == stream.value
    need(library.cublasSetStream_v2(handle, ctypes.c_void_p()))


CASES = {
    "gemm": gemm,
    "gemm_without_terms": gemm_without_terms,
    "wrong_arguments": wrong_arguments,
    "scalars_on_the_device": scalars_on_the_device,
    "scalars_in_the_wrong_place": scalars_in_the_wrong_place,
    "batches_in_a_list": lambda: batches(True),
    "batches_apart": lambda: batches(False),
    "narrow_types": narrow_types,
    "half": half,
    "not_offered_types": not_offered_types,
    "vectors": vectors,
    "vectors_by_real_numbers": vectors_by_real_numbers,
    "magnitudes": magnitudes,
    "vectors_of_any_type": vectors_of_any_type,
    "gemv": gemv,
    "gemv_batches": gemv_batches,
    "symmetric_by_vector": symmetric_by_vector,
    "symmetric_updates": symmetric_updates,
    "symmetric_products": symmetric_products,
    "outer_products": outer_products,
    "triangular": triangular,
    "nothing_times_a_triangle": nothing_times_a_triangle,
    "sums_of_matrices": sums_of_matrices,
    "systems": systems,
    "singular_systems": singular_systems,
    "copies": copies,
}

if __name__ == "__main__":
    start()
    main(CASES)
