"""Runs in the jail, on our CUDA runtime: Python that calls CUDA's libraries as a C program does.

Device memory has its addresses in this very process, so arrays of NumPy lie in it.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
TYPES: dict[str, Any] = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
SENTINEL = 77
_TO_DEVICE = 1

runtime = ctypes.CDLL("libcudart.so.13")
_kept: list[int] = []


def load() -> ctypes.CDLL:
    """The library that argument 1 names; the further ones are NAME=VALUE of what it looks at."""
    os.environ.update(word.split("=", 1) for word in sys.argv[2:])
    return ctypes.CDLL(sys.argv[1])


def device_array(values: Array) -> Array:
    """A copy of `values` in device memory; the array's memory is the device's."""
    flat = np.ascontiguousarray(values.reshape(-1, order="F"))
    place = ctypes.c_void_p()
    need(runtime.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(max(flat.nbytes, 1))))
    need(runtime.cudaMemcpy(place, pointer(flat), ctypes.c_size_t(flat.nbytes), _TO_DEVICE))
    assert place.value is not None
    _kept.append(place.value)
    raw = (ctypes.c_uint8 * max(flat.nbytes, 1)).from_address(place.value)
    return np.frombuffer(raw, dtype=values.dtype, count=flat.size).reshape(values.shape, order="F")


def free_all() -> None:
    while _kept:
        need(runtime.cudaFree(ctypes.c_void_p(_kept.pop())))


def pointer(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def need(status: int) -> None:
    if status:
        raise AssertionError(f"status {status}")


def random(rng: np.random.Generator, shape: tuple[int, ...] | int, dtype: Any) -> Array:
    values = rng.uniform(-1, 1, shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * rng.uniform(-1, 1, shape)
    return np.asarray(values, dtype=dtype)


class Matrix:
    """Columns in device memory, `leading` elements apart; what lies between them must stay as it is."""

    def __init__(self, values: Array, leading: int | None = None) -> None:
        rows, columns = values.shape
        self.leading = max(leading or rows, rows, 1)
        whole = np.full((self.leading, columns), SENTINEL, values.dtype, order="F")
        whole[:rows] = values
        self.whole = device_array(whole)
        self.value = self.whole[:rows]
        self.at = pointer(self.whole)

    def untouched(self) -> bool:
        return bool(np.all(self.whole[len(self.value) :] == SENTINEL))


class Vector:
    """Elements in device memory, `step` apart; with a negative step the first one is the last in memory."""

    def __init__(self, values: Array, step: int = 1) -> None:
        self.step = step
        apart = max(abs(step), 1)
        whole = np.full(max(len(values) * apart, 1), SENTINEL, values.dtype)
        whole[: len(values) * apart : apart] = values[:: -1 if step < 0 else 1]
        self.whole = device_array(whole)
        self.at = pointer(self.whole)
        self._count, self._apart = len(values), apart

    @property
    def value(self) -> Array:
        used: Array = self.whole[: self._count * self._apart : self._apart]
        return used[::-1] if self.step < 0 else used

    def untouched(self) -> bool:
        between = np.delete(self.whole, np.arange(self._count) * self._apart)
        return bool(np.all(between == SENTINEL))


def same(got: Array, want: Array, terms: int = 1) -> None:
    """Equal to what a sum of `terms` in the type of `got` can lose."""
    tolerance = 8 * np.finfo(got.dtype).eps * max(terms, 4) * max(1.0, float(np.max(np.abs(want), initial=0)))
    difference = np.max(np.abs(got - want), initial=0)
    if not difference <= tolerance:  # also where it is no number
        raise AssertionError(f"{difference} off, {tolerance} allowed:\n{got}\nis not\n{want}")


def main(cases: dict[str, Callable[[], None]]) -> None:
    """Runs all cases; prints name -> what went wrong, empty when nothing did."""
    told = {}
    for name, case in cases.items():
        try:
            case()
            told[name] = ""
        except Exception:
            told[name] = traceback.format_exc()
        free_all()
    json.dump(told, sys.stdout)
