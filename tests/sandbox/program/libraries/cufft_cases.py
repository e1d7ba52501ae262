"""Every transform of cuFFT that is offered, against NumPy's. Runs in the jail."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np
from device_library import Array, device_array, load, main, need, pointer, random

R2C, C2R, C2C, D2Z, Z2D, Z2Z = 0x2A, 0x2C, 0x29, 0x6A, 0x6C, 0x69
FORWARD, INVERSE = -1, 1
PRECISIONS = [
    (C2C, R2C, C2R, "C2C", "R2C", "C2R", np.complex64),
    (Z2Z, D2Z, Z2D, "Z2Z", "D2Z", "Z2D", np.complex128),
]
# Powers, mixed radices, generic small primes, large primes, and products with one.
LENGTHS = [
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    12,
    13,
    16,
    30,
    31,
    37,
    49,
    64,
    97,
    120,
    127,
    128,
    210,
    254,
    1000,
    1009,
    1024,
]
SHAPES = [(4, 6), (7, 5), (16, 16), (3, 4, 5), (8, 2, 9), (1, 5, 4), (2, 37)]

library = load()
rng = np.random.default_rng(3)


def plan(shape: tuple[int, ...], kind: int, batch: int = 1) -> ctypes.c_int:
    made = ctypes.c_int()
    if len(shape) == 1:
        need(library.cufftPlan1d(ctypes.byref(made), shape[0], kind, batch))
    elif batch == 1:
        need(getattr(library, f"cufftPlan{len(shape)}d")(ctypes.byref(made), *shape, kind))
    else:
        sizes = (ctypes.c_int * len(shape))(*shape)
        need(
            library.cufftPlanMany(ctypes.byref(made), len(shape), sizes, None, 1, 0, None, 1, 0, kind, batch)
        )
    return made


def run(name: str, made: ctypes.c_int, source: Array, target: Array, *direction: int) -> None:
    need(getattr(library, f"cufftExec{name}")(made, pointer(source), pointer(target), *direction))
    need(library.cufftDestroy(made))


def rows(values: Array) -> Array:
    """In device memory by rows, as C has it."""
    return device_array(np.ascontiguousarray(values).reshape(-1))


def same(got: Array, want: Array, dtype: Any) -> None:
    """Transforms lose little: some units in the last place of the largest number."""
    scale = max(1e-30, float(np.max(np.abs(want), initial=0)))
    off = float(np.max(np.abs(got.reshape(-1) - want.reshape(-1)), initial=0)) / scale
    assert off < (3e-7 if dtype == np.complex64 else 4e-15), (off, want.shape)


def complex_ones() -> None:
    for c2c, _, _, name, _, _, dtype in PRECISIONS:
        for shape in [*((n,) for n in LENGTHS), *SHAPES]:
            for batch, in_place in ((1, False), (3, True)):
                values = random(rng, (batch, *shape), dtype)
                axes = tuple(range(1, len(shape) + 1))
                forward = np.fft.fftn(values.astype(np.complex128), axes=axes)
                source = rows(values)
                target = source if in_place else rows(np.zeros_like(values))
                run(name, plan(shape, c2c, batch), source, target, FORWARD)
                same(target, forward, dtype)
                if not in_place:
                    assert np.array_equal(source, values.reshape(-1)), "the input was changed"
                source = rows(values)
                run(name, plan(shape, c2c, batch), source, source, INVERSE)
                back = np.fft.ifftn(values.astype(np.complex128), axes=axes) * np.prod(shape)
                same(source, back, dtype)


def real_ones() -> None:
    for _, r2c, c2r, _, forth, back, dtype in PRECISIONS:
        real = np.zeros(1, dtype).real.dtype
        for shape, batch in itertools.product([*((n,) for n in LENGTHS), *SHAPES], (1, 2)):
            values = random(rng, (batch, *shape), real)
            axes = tuple(range(1, len(shape) + 1))
            spectrum = np.fft.rfftn(values.astype(np.float64), axes=axes)
            source, target = rows(values), rows(np.zeros(spectrum.shape, dtype))
            run(forth, plan(shape, r2c, batch), source, target)
            same(target, spectrum, dtype)
            returned = rows(np.zeros_like(values))
            run(back, plan(shape, c2r, batch), target, returned)
            same(returned, values.astype(np.float64) * np.prod(shape), dtype)


def real_ones_in_place() -> None:
    """Real numbers have the room of the complex ones: rows are padded."""
    for _, r2c, c2r, _, forth, back, dtype in PRECISIONS:
        real = np.zeros(1, dtype).real.dtype
        for shape, batch in itertools.product([(8,), (9,), (6, 10), (4, 7), (3, 4, 6)], (1, 3)):
            half = shape[-1] // 2 + 1
            values = random(rng, (batch, *shape), real)
            padded = np.full((batch, *shape[:-1], 2 * half), np.nan, real)
            padded[..., : shape[-1]] = values
            memory = rows(padded)
            run(forth, plan(shape, r2c, batch), memory, memory)
            spectrum = np.fft.rfftn(values.astype(np.float64), axes=tuple(range(1, len(shape) + 1)))
            same(memory.view(dtype), spectrum, dtype)
            run(back, plan(shape, c2r, batch), memory, memory)
            got = memory.reshape(padded.shape)[..., : shape[-1]]
            same(np.ascontiguousarray(got), values.astype(np.float64) * np.prod(shape), dtype)


def strides() -> None:
    """Numbers apart, rows wider than what is transformed, batches interleaved or with room between them."""
    n, batch = 12, 5
    values = random(rng, (batch, n), np.complex64)
    want = np.fft.fft(values.astype(np.complex128))
    ints = ctypes.c_int * 1
    # Interleaved: the numbers of one transform are `batch` apart. Out: one after another with a gap of three.
    source, target = rows(values.T), rows(np.full((batch, n + 3), 9, np.complex64))
    made = ctypes.c_int()
    size = ints(n)
    need(library.cufftPlanMany(ctypes.byref(made), 1, size, size, batch, 1, size, 1, n + 3, C2C, batch))
    run("C2C", made, source, target, FORWARD)
    same(np.ascontiguousarray(target.reshape(batch, n + 3)[:, :n]), want, np.complex64)
    assert np.all(target.reshape(batch, n + 3)[:, n:] == 9)
    # Part of a larger picture, every second number of it.
    shape, embed = (5, 6), (7, 8)
    pairs = ctypes.c_int * 2
    picture = random(rng, (2, *embed, 2), np.float64)
    source, target = rows(picture), rows(np.zeros((2, 5, 4), np.complex128))
    out = (5, 4)
    need(library.cufftCreate(ctypes.byref(made)))
    room = ctypes.c_size_t(1)
    words = (pairs(*embed), 2, int(np.prod(embed)) * 2, pairs(*out), 1, 20, D2Z, 2)
    need(library.cufftMakePlanMany(made, 2, pairs(*shape), *words, ctypes.byref(room)))
    run("D2Z", made, source, target)
    same(target, np.fft.rfft2(picture[:, :5, :6, 0]), np.complex128)


def by_types_of_elements() -> None:
    """cudaDataType of what is read, written, computed in."""
    r32, r64, c32, c64, r16 = 0, 1, 4, 5, 2
    sizes, room, made = (ctypes.c_longlong * 2)(6, 8), ctypes.c_size_t(), ctypes.c_int()
    wide = ctypes.c_longlong

    def prepare(from_type: int, to_type: int, compute: int) -> int:
        need(library.cufftCreate(ctypes.byref(made)))
        layouts = [(None, wide(1), wide(0), kind) for kind in (from_type, to_type)]
        words = (*layouts[0], *layouts[1], wide(1), ctypes.byref(room), compute)
        return int(library.cufftXtMakePlanMany(made, 2, sizes, *words))

    for real, number, r, c in ((np.float32, np.complex64, r32, c32), (np.float64, np.complex128, r64, c64)):
        values = random(rng, (6, 8), real)
        spectrum = np.fft.rfft2(values.astype(np.float64))
        source, target = rows(values), rows(np.zeros(spectrum.shape, number))
        need(prepare(r, c, c))
        need(library.cufftXtExec(made, pointer(source), pointer(target), INVERSE))  # there is one way only
        same(target, spectrum, number)
        need(prepare(c, r, c))
        need(library.cufftXtExec(made, pointer(target), pointer(source), FORWARD))
        same(source, values.astype(np.float64) * 48, number)
        numbers = random(rng, (6, 8), number)
        memory = rows(numbers)
        need(prepare(c, c, c))
        need(library.cufftXtExec(made, pointer(memory), pointer(memory), FORWARD))
        same(memory, np.fft.fft2(numbers.astype(np.complex128)), number)
    assert prepare(r16, 6, 6) == 16


def big() -> None:
    for n in (1 << 18, 3 * 5 * 7 * 1024, 100003):
        values = random(rng, n, np.complex64)
        memory = rows(values)
        run("C2C", plan((n,), C2C), memory, memory, FORWARD)
        same(memory, np.fft.fft(values.astype(np.complex128)), np.complex64)


def wrong_arguments() -> None:
    made = ctypes.c_int()
    by = ctypes.byref(made)
    assert library.cufftPlan1d(by, 0, C2C, 1) == 8
    assert library.cufftPlan1d(by, 8, 99, 1) == 3
    assert library.cufftPlan1d(by, 8, C2C, 0) == 8
    assert library.cufftExecC2C(12345, pointer(np.zeros(1)), pointer(np.zeros(1)), -1) == 1
    memory = device_array(np.zeros(8, np.complex64))
    need(library.cufftPlan1d(by, 8, C2C, 1))
    assert library.cufftExecR2C(made, pointer(memory), pointer(memory)) == 1
    assert library.cufftExecC2C(made, pointer(memory), pointer(memory), 0) == 4
    need(library.cufftDestroy(made))
    assert library.cufftDestroy(made) == 1


CASES = {
    "complex_ones": complex_ones,
    "real_ones": real_ones,
    "real_ones_in_place": real_ones_in_place,
    "strides": strides,
    "by_types_of_elements": by_types_of_elements,
    "big": big,
    "fft_wrong_arguments": wrong_arguments,
}

if __name__ == "__main__":
    main(CASES)
