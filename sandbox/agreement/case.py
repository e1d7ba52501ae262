"""One launch of one kernel: its arrays, and what must come out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]
#: How outputs of two machines may differ; see `bounds.outputs`.
Numbers = Literal["exact", "unordered", "approximate", "tensor"]


@dataclass(frozen=True)
class In:
    """An array that kernels read."""

    name: str
    values: Array


@dataclass(frozen=True)
class Out:
    """An array that kernels write; it starts as bytes 0xFF that nobody may read."""

    name: str
    count: int
    dtype: str = "float32"


@dataclass(frozen=True)
class InOut:
    """An array that kernels read and write."""

    name: str
    values: Array


Argument = In | Out | InOut | np.generic


@dataclass(frozen=True)
class Case:
    name: str
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: tuple[Argument, ...]
    #: From the arrays as they begin to those that are read back; None: no simple reference is known.
    reference: Callable[[Arrays], Arrays] | None = None
    shared: int = 0  # dynamic shared memory, bytes
    numbers: Numbers = "exact"
    #: The longest chain of multiply-adds, or of terms of a sum, behind one output. Each is at most 1 in size.
    chain: int = 0
    expands: str = ""  # what the machine makes several instructions of, so that FLOP are not compared
    races: bool = False  # lanes of one store meet at one address: a race, on purpose
    group: str = ""

    @property
    def threads(self) -> int:
        return math.prod(self.block)

    @property
    def blocks(self) -> int:
        return math.prod(self.grid)

    @property
    def arrays(self) -> list[In | Out | InOut]:
        return [argument for argument in self.arguments if not isinstance(argument, np.generic)]

    @property
    def outputs(self) -> list[Out | InOut]:
        return [array for array in self.arrays if not isinstance(array, In)]

    def beginnings(self) -> dict[str, Array]:
        """The arrays that begin with something, copied."""
        return {array.name: array.values.copy() for array in self.arrays if not isinstance(array, Out)}

    def read(self, back: Mapping[str, bytes]) -> dict[str, Array]:
        """Outputs as arrays, from the bytes of a replay."""
        return {
            each.name: np.frombuffer(
                back[each.name], each.dtype if isinstance(each, Out) else each.values.dtype
            )
            for each in self.outputs
        }


def size(array: In | Out | InOut) -> int:
    """Bytes."""
    return array.count * np.dtype(array.dtype).itemsize if isinstance(array, Out) else array.values.nbytes


def case(
    kernel: str,
    grid: int | tuple[int, int],
    block: int | tuple[int, int],
    *arguments: Argument | int,
    name: str = "",
    **more: Any,
) -> Case:
    """A case; Python's integers are C's `int`. `more`: other fields of `Case`."""
    return Case(
        name=name or kernel,
        kernel=kernel,
        grid=_three(grid),
        block=_three(block),
        arguments=tuple(np.int32(each) if isinstance(each, int) else each for each in arguments),
        **more,
    )


def _three(extent: int | tuple[int, int]) -> tuple[int, int, int]:
    return (extent, 1, 1) if isinstance(extent, int) else (*extent, 1)


def floats(count: int, seed: int = 0, dtype: str = "float32") -> Array:
    """Between -1 and 1, by seed."""
    return np.random.default_rng(seed).uniform(-1, 1, count).astype(dtype)


def integers(count: int, below: int, seed: int = 0, dtype: str = "int32") -> Array:
    return np.random.default_rng(seed).integers(0, below, count).astype(dtype)


def permutation(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).permutation(count).astype("int32")


def bfloats(values: Array) -> Array:
    """The upper halves of floats, which are bfloat16's bits; cut off, not rounded."""
    words: Array = values.astype("float32").view("uint32") >> 16
    return words.astype("uint16")


def from_bfloats(bits: Array) -> Array:
    words: Array = bits.astype("uint32") << 16
    return words.view("float32")


def to_bfloats(values: Array) -> Array:
    """Rounded to the nearest, ties to even; no NaN."""
    bits: Array = values.astype("float32").view("uint32").astype("uint64")
    rounded: Array = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return rounded.astype("uint16")
