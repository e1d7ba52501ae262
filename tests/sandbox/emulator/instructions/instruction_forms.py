"""What the tables of instruction forms are made of, and the values a form is tried on. Runs nothing."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from exact_floats import FORMATS, to_float

Meaning = Callable[..., int | float | tuple[int, ...]]
Sampler = Callable[[np.random.Generator, str, int], list[int]]
NAMES = "abcf"  # of source operands
TARGETS = "de"  # of destinations


@dataclass(frozen=True)
class Bound:
    """How far an approximation may lie from the exact value: relative to it, plus an absolute part."""

    relative: float = 0.0
    absolute: float = 0.0


@dataclass(frozen=True)
class Form:
    """One instruction form (or a chain that only makes sense together).

    `{d}` and `{e}` in the text are destinations, `{a}`, `{b}`, `{c}`, `{f}` sources. Operands are integers to
    `meaning`: signed for s types, raw bits for all others, 0 or 1 for pred. It gives the destination's bits
    (a tuple for two), or the exact value as a float where `bound` says how close the result must be.
    """

    text: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    meaning: Meaning
    bound: Bound | None = None
    values: Sampler | None = None
    constants: str = NAMES  # sources that may be written as constants
    any_nan: bool = False  # a NaN may have any sign and payload

    @property
    def key(self) -> str:
        return f"{zlib.crc32(repr((self.text, self.results, self.sources)).encode()):08x}"

    def operands(self, names: dict[str, str]) -> str:
        return self.text.format(**names)


def width(kind: str) -> int:
    """Bits of the register that holds an operand."""
    if kind == "pred":
        return 32
    if kind.endswith("x2"):
        return {"f32x2": 64, "e4m3x2": 16, "e5m2x2": 16}.get(kind, 32)
    digits = int(kind.lstrip("bsutf"))
    return max(16, digits)


def interpreted(kind: str, bits: int) -> int:
    """A pattern as `meaning` gets it."""
    if kind[0] == "s" and not kind.endswith("x2") and bits >> (width(kind) - 1) & 1:
        return bits - (1 << width(kind))
    return bits & 1 if kind == "pred" else bits


def edges(kind: str) -> list[int]:
    """The corners of a type, as patterns."""
    bits = width(kind)
    if kind in FORMATS:
        form = FORMATS[kind]
        one = ((1 << (form.exponent_bits - 1)) - 1) << form.fraction_bits
        least = 1 << form.fraction_bits
        positive = [0, one, one | 1, one + (least >> 1), one + least, form.largest, form.infinity]
        positive += [1, 3, least - 1, least, least + 1, one - 1, one - least]
        return [p | s for p in positive for s in (0, form.sign)] + [form.nan, form.infinity | least >> 1]
    if kind == "pred":
        return [0, 1]
    if kind.endswith("x2") and kind not in ("e4m3x2", "e5m2x2"):
        half = edges(kind[:-2])
        return [low | half[(i * 7 + 3) % len(half)] << bits // 2 for i, low in enumerate(half)]
    top = 1 << (bits - 1)
    found = [0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, top - 1, top, top + 1, 2 * top - 1]
    return [value & (2 * top - 1) for value in (*found, 2 * top - 2, 255, 0x5555 * 0x100010001)]


def mixed(generator: np.random.Generator, kind: str, count: int) -> list[int]:
    """Corners and random patterns; of floats, ordinary sizes more often than bare bits would give."""
    bits, corners = width(kind), edges(kind)
    chosen = []
    for _ in range(count):
        dice = generator.random()
        if dice < 0.5:
            chosen.append(corners[generator.integers(len(corners))])
        elif kind in FORMATS and dice < 0.85:
            chosen.append(_ordinary(generator, kind))
        elif kind in ("f16x2", "bf16x2", "f32x2") and dice < 0.85:
            half = kind[:-2]
            chosen.append(_ordinary(generator, half) | _ordinary(generator, half) << bits // 2)
        else:
            chosen.append(int.from_bytes(generator.bytes(bits // 8), "little"))
    return [value & 1 for value in chosen] if kind == "pred" else chosen


def _ordinary(generator: np.random.Generator, kind: str) -> int:
    form = FORMATS[kind]
    middle = (1 << (form.exponent_bits - 1)) - 1
    field = middle + int(generator.integers(-3, 4))
    fraction = int(generator.integers(1 << form.fraction_bits))
    return field << form.fraction_bits | fraction | int(generator.integers(2)) << (form.bits - 1)


def small(generator: np.random.Generator, kind: str, count: int) -> list[int]:
    """Shift counts, bit positions: integers around the widths; other types as ever."""
    if kind in ("u32", "s32", "b32"):
        odd = [255, 256, 0x80000000, 0xFFFFFFFF]
        values = [int(generator.integers(0, 70)) for _ in range(count)]
        return [odd[int(generator.integers(4))] if generator.random() < 0.15 else value for value in values]
    return mixed(generator, kind, count)


def near(low: float, high: float) -> Sampler:
    """Floats of either sign with magnitudes from 2^low to 2^high, and the corners."""

    def sample(generator: np.random.Generator, kind: str, count: int) -> list[int]:
        dtype, raw = {"f32": ("f4", "u4"), "f64": ("f8", "u8"), "f16": ("f2", "u2")}[kind]
        sizes = 2.0 ** generator.uniform(low, high, count) * generator.choice([-1, 1], count)
        values = [int(value) for value in sizes.astype(dtype).view(raw)]
        corners = edges(kind)
        return [
            corners[int(generator.integers(len(corners)))] if generator.random() < 0.2 else value
            for value in values
        ]

    return sample


def number(kind: str, bits: int) -> float:
    return to_float(FORMATS[kind], bits)


class Table:
    """The forms of one part of the instruction set."""

    def __init__(self, name: str, target: str = "sm_90") -> None:
        self.name = name
        self.target = target  # the oldest architecture that has them all
        self.forms: list[Form] = []

    def add(self, text: str, types: str, meaning: Meaning, **more: object) -> None:
        """`types`: destinations, a colon, sources: "s32 : s32 s32"."""
        results, _, sources = types.partition(":")
        form = Form(text, tuple(results.split()), tuple(sources.split()), meaning, **more)  # type: ignore[arg-type]
        self.forms.append(form)


def halves(function: Callable[..., int], bits: int = 16) -> Meaning:
    """The same on the lower and the upper half of packed operands."""
    mask = (1 << bits) - 1

    def apply(*values: int) -> int:
        return function(*(v & mask for v in values)) | function(*(v >> bits for v in values)) << bits

    return apply
