"""Scalar video instructions, in Python's integers: parts of operands, saturation, and what c is for."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable

from forms_video import packed_corners
from instruction_forms import Table

TABLE = Table("video scalars")
SELECTORS = ("", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1")
TYPES = ("u32", "s32")


def extent(selector: str) -> tuple[int, int]:
    """Lowest bit and bits of a part."""
    bits = {"": 32, ".b": 8, ".h": 16}[selector[:2]]
    return int(selector[2:] or 0) * bits, bits


def part(word: int, selector: str, kind: str) -> int:
    low, bits = extent(selector)
    value = word >> low & (1 << bits) - 1
    return value - (1 << bits) if kind == "s32" and value >> (bits - 1) else value


def clamp(value: int, bits: int, kind: str) -> int:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind == "s32" else (0, (1 << bits) - 1)
    return max(low, min(high, value))


def finished(result: int, c: int, kind: str, saturates: bool, second: str, selector: str) -> int:
    low, bits = extent(selector)
    if saturates:
        result = clamp(result, bits, kind)
    if second:
        result &= 0xFFFFFFFF
        signed = part(result, "", kind), part(c, "", kind)
        return {".add": operator.add, ".min": min, ".max": max}[second](*signed)
    mask = (1 << bits) - 1
    return c & ~(mask << low) | (result & mask) << low if selector else result


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "vadd": operator.add,
    "vsub": operator.sub,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
    "vshl.clamp": lambda a, b: a << min(b, 32),
    "vshl.wrap": lambda a, b: a << (b & 31),
    "vshr.clamp": lambda a, b: a >> min(b, 32),
    "vshr.wrap": lambda a, b: a >> (b & 31),
}
RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
# (operation on c, part of d): every way to use the third operand, and none.
ENDINGS = [("", ""), (".add", ""), (".min", ""), (".max", "")] + [
    ("", selector) for selector in SELECTORS[1:]
]


def add(
    opcode: str,
    function: Callable[[int, int], int],
    kinds: tuple[str, str, str],
    saturates: bool,
    ending: tuple[str, str],
    selectors: tuple[str, str],
) -> None:
    (second, target), (one, two) = ending, selectors
    third = ", {c}" if second or target else ""

    def meaning(a: int, b: int, c: int = 0) -> int:
        result = function(part(a, one, kinds[1]), part(b, two, kinds[2]))
        return finished(result, c, kinds[0], saturates, second, target)

    TABLE.add(
        f"{opcode}{second} {{d}}{target}, {{a}}{one}, {{b}}{two}{third}",
        "b32 : b32 b32 b32" if third else "b32 : b32 b32",
        meaning,
        values=packed_corners,
        constants="",
    )


parts = itertools.cycle(itertools.product(SELECTORS, SELECTORS))
for name, function in OPERATIONS.items():
    verb, _, mode = name.partition(".")
    for number, (ending, saturates) in enumerate(itertools.product(ENDINGS, (False, True))):
        kinds = (TYPES[number % 2], TYPES[number // 2 % 2], TYPES[number // 4 % 2])
        if mode:
            kinds = (*kinds[:2], "u32")
        opcode = f"{verb}.{'.'.join(kinds)}{'.sat' * saturates}{'.' * bool(mode)}{mode}"
        # One step more each time round, so that the pairs do not keep to the endings.
        next(parts)
        add(opcode, function, kinds, saturates, ending, next(parts))
for number, (relation, ending) in enumerate(itertools.product(RELATIONS, ENDINGS)):
    kinds = ("u32", TYPES[number % 2], TYPES[number // 2 % 2])
    holds = RELATIONS[relation]
    next(parts)
    add(f"vset.{kinds[1]}.{kinds[2]}.{relation}", holds, kinds, False, ending, next(parts))


def multiply(
    types: tuple[str, str], selectors: tuple[str, str], sign: tuple[str, str, str], modifiers: str, scale: int
) -> Callable[[int, int, int], int]:
    def apply(a: int, b: int, c: int) -> int:
        negated = (sign[0] + sign[1]).count("-") == 1
        signed = "s32" in types or negated or sign[2] == "-"
        product = part(a, selectors[0], types[0]) * part(b, selectors[1], types[1])
        third = part(c, "", "s32" if signed else "u32")
        result = (-product if negated else product) + (-third if sign[2] else third) + (".po" in modifiers)
        result >>= scale
        return clamp(result, 32, "s32" if signed else "u32") if ".sat" in modifiers else result

    return apply


signs = [("", "", ""), ("-", "", ""), ("", "-", ""), ("", "", "-")]
modifiers = [
    po + sat + scale for po in ("", ".po") for sat in ("", ".sat") for scale in ("", ".shr7", ".shr15")
]
for number, (modifier, types) in enumerate(itertools.product(modifiers, itertools.product(TYPES, TYPES))):
    sign = signs[0] if ".po" in modifier else signs[number % 4]
    next(parts)
    one, two = chosen = next(parts)
    scale = 7 if ".shr7" in modifier else 15 if ".shr15" in modifier else 0
    TABLE.add(
        f"vmad.{TYPES[number // 3 % 2]}.{'.'.join(types)}{modifier} "
        f"{{d}}, {sign[0]}{{a}}{one}, {sign[1]}{{b}}{two}, {sign[2]}{{c}}",
        "b32 : b32 b32 b32",
        multiply(types, chosen, sign, modifier, scale),
        values=packed_corners,
        constants="",
    )
