"""The benchmark's kernels for Numba's CUDA simulator: prints lines "name seconds work".

Run as a program with NUMBA_ENABLE_CUDASIM=1. Sizes are small: the simulator is slow, and its speed does not
depend on them.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numba import cuda, float32  # type: ignore[import-not-found, unused-ignore]

TILE = 8


@cuda.jit  # type: ignore[untyped-decorator, unused-ignore]
def product_naive(a: Any, b: Any, c: Any) -> None:
    column, row = cuda.grid(2)
    total = float32(0)
    for k in range(a.shape[1]):
        total += a[row, k] * b[k, column]
    c[row, column] = total


@cuda.jit  # type: ignore[untyped-decorator, unused-ignore]
def product_tiled(a: Any, b: Any, c: Any) -> None:
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    column, row = cuda.grid(2)
    total = float32(0)
    for start in range(0, a.shape[1], TILE):
        left[y, x] = a[row, start + x]
        right[y, x] = b[start + y, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    c[row, column] = total


@cuda.jit  # type: ignore[untyped-decorator, unused-ignore]
def stencil(source: Any, target: Any) -> None:
    x, y = cuda.grid(2)
    if 1 <= x < source.shape[1] - 1 and 1 <= y < source.shape[0] - 1:
        around = source[y, x - 1] + source[y, x + 1] + source[y - 1, x] + source[y + 1, x]
        target[y, x] = 0.5 * source[y, x] + 0.125 * around


@cuda.jit  # type: ignore[untyped-decorator, unused-ignore]
def histogram(values: Any, bins: Any) -> None:
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, values[i] % bins.size, 1)


@cuda.jit  # type: ignore[untyped-decorator, unused-ignore]
def reduce(values: Any, sums: Any) -> None:
    """With the tree down to one value in shared memory: the simulator has no shuffles."""
    part = cuda.shared.array(64, float32)
    x, total = cuda.threadIdx.x, float32(0)
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        total += values[i]
    part[x] = total
    cuda.syncthreads()
    step = cuda.blockDim.x // 2
    while step:
        if x < step:
            part[x] += part[x + step]
        cuda.syncthreads()
        step //= 2
    if x == 0:
        sums[cuda.blockIdx.x] = part[0]


def main() -> None:
    side = 32
    a = np.random.default_rng(1).random((side, side), dtype="f4")
    c = np.zeros_like(a)
    grid, block = (side // TILE, side // TILE), (TILE, TILE)
    numbers = np.arange(1024, dtype="u4")
    for name, work, launch in (
        ("product_naive", side**3, lambda: product_naive[grid, block](a, a, c)),
        ("product_tiled", side**3, lambda: product_tiled[grid, block](a, a, c)),
        ("reduce", a.size, lambda: reduce[2, 64](a.reshape(-1), np.zeros(2, "f4"))),
        ("stencil", (side - 2) ** 2, lambda: stencil[grid, block](a, c)),
        ("histogram", numbers.size, lambda: histogram[2, 64](numbers, np.zeros(256, "u4"))),
    ):
        began = time.perf_counter()
        launch()  # type: ignore[no-untyped-call, unused-ignore]
        print(name, time.perf_counter() - began, work)


if __name__ == "__main__":
    main()
