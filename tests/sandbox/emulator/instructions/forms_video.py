"""SIMD video instructions: two halves or four bytes of a word, one by one in Python's integers."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
from instruction_forms import Table

TABLE = Table("video")
# What an element may be: the corners of bytes, or of halves.
_BYTES = [0, 1, 2, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF]
_HALVES = [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF]


def packed_corners(generator: np.random.Generator, kind: str, count: int) -> list[int]:
    """Words whose elements are corners, and random ones."""

    def word() -> int:
        dice = generator.random()
        if dice < 0.4:
            return sum(int(generator.choice(_BYTES)) << 8 * index for index in range(4))
        if dice < 0.7:
            return sum(int(generator.choice(_HALVES)) << 16 * index for index in range(2))
        return int(generator.integers(1 << 32))

    return [word() for _ in range(count)]


def split(word: int, bits: int, kind: str) -> list[int]:
    """Its elements as numbers, the lowest first."""
    values = [word >> position & (1 << bits) - 1 for position in range(0, 32, bits)]
    return [value - (1 << bits) if kind == "s32" and value >> (bits - 1) else value for value in values]


def average(a: int, b: int) -> int:
    """Halves go away from zero."""
    total = a + b
    return (abs(total) + 1) // 2 * (1 if total >= 0 else -1)


def clamp(value: int, bits: int, kind: str) -> int:
    if kind == "s32":
        return max(-(1 << bits - 1), min((1 << bits - 1) - 1, value))
    return max(0, min((1 << bits) - 1, value))


def element_by_element(
    function: Callable[[int, int], int], bits: int, types: list[str], modifier: str
) -> Callable[[int, int, int], int]:
    """`types`: of the result and both sources."""

    def apply(a: int, b: int, c: int) -> int:
        results = [
            function(*pair) for pair in zip(split(a, bits, types[1]), split(b, bits, types[2]), strict=True)
        ]
        if modifier == ".add":
            return c + sum(results)
        if modifier == ".sat":
            results = [clamp(result, bits, types[0]) for result in results]
        return sum((result & (1 << bits) - 1) << bits * index for index, result in enumerate(results))

    return apply


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "vadd": operator.add,
    "vsub": operator.sub,
    "vavrg": average,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
}
MIXED = ["u32 u32 s32", "u32 s32 u32", "s32 u32 u32", "u32 s32 s32", "s32 u32 s32", "s32 s32 u32"]
RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def add(text: str, function: Callable[[int, int], int], bits: int, types: list[str], modifier: str) -> None:
    TABLE.add(
        f"{text} {{d}}, {{a}}, {{b}}, {{c}}",
        "b32 : b32 b32 b32",
        element_by_element(function, bits, types, modifier),
        values=packed_corners,
        constants="",  # PTX has none here
    )


for lanes in (2, 4):
    for turn, (name, function) in enumerate(OPERATIONS.items()):
        for modifier in ("", ".sat", ".add"):
            mixed = MIXED[(turn + lanes + len(modifier)) % 6]  # every mixture comes with every modifier
            for kinds in ("u32 u32 u32", "s32 s32 s32", mixed):
                types = kinds.split()
                add(f"{name}{lanes}.{'.'.join(types)}{modifier}", function, 32 // lanes, types, modifier)
    for turn, (relation, holds) in enumerate(RELATIONS.items()):
        for modifier in ("", ".add"):
            for kinds in ("u32 u32", "s32 s32", ("u32 s32", "s32 u32")[turn % 2]):
                types = ["u32", *kinds.split()]
                add(
                    f"vset{lanes}.{'.'.join(types[1:])}.{relation}{modifier}",
                    holds,
                    32 // lanes,
                    types,
                    modifier,
                )
