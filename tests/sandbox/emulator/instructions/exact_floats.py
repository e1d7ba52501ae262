"""Floating point in Python's integers: any binary format, any operation, rounded once in any direction.

A number is None (NaN) or (sign, mantissa, exponent), which means (-1)^sign * mantissa * 2^exponent; an
infinity has the mantissa INFINITE. Values go in and come out as bit patterns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

INFINITE = -1
Number = tuple[int, int, int] | None


@dataclass(frozen=True)
class Format:
    exponent_bits: int
    fraction_bits: int
    nan: int  # the pattern operations give
    finite: bool = False  # no infinities: the top exponent holds numbers too, all ones is NaN

    @property
    def bits(self) -> int:
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def lowest(self) -> int:
        """Exponent of the smallest normal number."""
        return 2 - (1 << (self.exponent_bits - 1))

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.fraction_bits

    @property
    def largest(self) -> int:
        return self.nan - 1 if self.finite else self.infinity - 1

    def unpack(self, bits: int) -> Number:
        sign, magnitude = bits >> (self.bits - 1) & 1, bits & (self.sign - 1)
        if magnitude > (self.largest if self.finite else self.infinity):
            return None
        if magnitude == self.infinity and not self.finite:
            return sign, INFINITE, 0
        field, fraction = magnitude >> self.fraction_bits, magnitude & ((1 << self.fraction_bits) - 1)
        if field:
            fraction |= 1 << self.fraction_bits
        return sign, fraction, self.lowest - self.fraction_bits + max(field - 1, 0)

    def pack(self, number: Number, mode: str = "rn", sticky: bool = False) -> int:
        """Rounds. `sticky`: the number is a little larger in magnitude than its mantissa says."""
        if number is None:
            return self.nan
        sign, mantissa, exponent = number
        place = sign << (self.bits - 1)
        if mantissa == INFINITE:
            return place | (self.nan if self.finite else self.infinity)
        if not mantissa and not sticky:
            return place
        top = exponent + mantissa.bit_length() - 1
        unit = max(top, self.lowest) - self.fraction_bits
        shift = unit - exponent
        assert shift > 1 or not sticky, "too few bits to round"
        if shift <= 0:
            kept, rest, half = mantissa << -shift, 0, 1
        else:
            kept, rest, half = mantissa >> shift, mantissa & ((1 << shift) - 1), 1 << (shift - 1)
        away = _rounds_away(mode, sign, kept, rest, half, sticky)
        step = unit - (self.lowest - self.fraction_bits)
        magnitude = (step << self.fraction_bits) + kept + away
        if magnitude > self.largest:
            stays = {"rz": True, "rm": not sign, "rp": bool(sign)}.get(mode, False)
            return place | (self.largest if stays else self.nan if self.finite else self.infinity)
        return place | magnitude

    def flushed(self, bits: int) -> int:
        """Subnormal becomes zero of its sign."""
        return bits & self.sign if bits & self.infinity == 0 else bits

    def is_nan(self, bits: int) -> bool:
        return self.unpack(bits) is None


def _rounds_away(mode: str, sign: int, kept: int, rest: int, half: int, sticky: bool) -> bool:
    some = rest > 0 or sticky
    if mode == "rn":
        return rest > half or (rest == half and (sticky or kept & 1 == 1))
    if mode == "rna":
        return rest >= half
    return some and {"rz": False, "rm": sign == 1, "rp": sign == 0}[mode]


F64 = Format(11, 52, 0x7FF8_0000_0000_0000)
F32 = Format(8, 23, 0x7FFF_FFFF)
TF32 = Format(8, 10, 0x3FFFF)
F16 = Format(5, 10, 0x7FFF)
BF16 = Format(8, 7, 0x7FFF)
E4M3 = Format(4, 3, 0x7F, finite=True)
E5M2 = Format(5, 2, 0x7F)
FORMATS = {"f64": F64, "f32": F32, "f16": F16, "bf16": BF16, "e4m3": E4M3, "e5m2": E5M2}


def add(first: Number, second: Number, mode: str = "rn") -> Number:
    """Exact sum. `mode` decides the sign of a zero that numbers of either sign leave."""
    if first is None or second is None:
        return None
    if first[1] == INFINITE or second[1] == INFINITE:
        if first[1] == second[1] and first[0] != second[0]:
            return None
        return first if first[1] == INFINITE else second
    exponent = min(first[2], second[2])
    total = 0
    for sign, mantissa, own in (first, second):
        total += (-mantissa if sign else mantissa) << (own - exponent)
    if total == 0:
        both = first[0] == second[0] and first[1] == second[1] == 0
        return (first[0] if both else int(mode == "rm")), 0, 0
    return int(total < 0), abs(total), exponent


def negated(number: Number) -> Number:
    return None if number is None else (1 - number[0], number[1], number[2])


def multiply(first: Number, second: Number) -> Number:
    if first is None or second is None:
        return None
    sign = first[0] ^ second[0]
    if first[1] == INFINITE or second[1] == INFINITE:
        return None if first[1] == 0 or second[1] == 0 else (sign, INFINITE, 0)
    return sign, first[1] * second[1], first[2] + second[2]


def fused(first: Number, second: Number, third: Number, mode: str = "rn") -> Number:
    return add(multiply(first, second), third, mode)


def divide(kind: Format, first: int, second: int, mode: str = "rn") -> int:
    a, b = kind.unpack(first), kind.unpack(second)
    if a is None or b is None:
        return kind.nan
    sign = a[0] ^ b[0]
    if a[1] == INFINITE or b[1] == 0:
        undefined = b[1] == INFINITE if a[1] == INFINITE else a[1] == 0
        return kind.pack(None if undefined else (sign, INFINITE, 0))
    if b[1] == INFINITE:
        return kind.pack((sign, 0, 0))
    more = 2 * kind.fraction_bits + 8
    quotient, rest = divmod(a[1] << more, b[1])
    return kind.pack((sign, quotient, a[2] - b[2] - more), mode, sticky=rest > 0)


def square_root(kind: Format, bits: int, mode: str = "rn") -> int:
    number = kind.unpack(bits)
    if number is None or (number[0] and number[1]):
        return kind.nan
    sign, mantissa, exponent = number
    if mantissa in (0, INFINITE):
        return bits
    more = 2 * kind.fraction_bits + 8
    more += (exponent - more) & 1
    root = math.isqrt(mantissa << more)
    return kind.pack((sign, root, (exponent - more) // 2), mode, sticky=root * root != mantissa << more)


def from_integer(value: int) -> Number:
    return int(value < 0), abs(value), 0


def to_integral(number: Number, mode: str) -> Number:
    """Rounded to a whole number; `mode` is rni, rzi, rmi or rpi."""
    if number is None or number[1] == INFINITE or number[2] >= 0:
        return number
    sign, mantissa, exponent = number
    kept, rest, half = mantissa >> -exponent, mantissa & ((1 << -exponent) - 1), 1 << (-exponent - 1)
    return sign, kept + _rounds_away(mode[:2], sign, kept, rest, half, False), 0


def integer_of(number: Number) -> int | None:
    """The value of a whole number; None for what is none."""
    if number is None or number[1] == INFINITE:
        return None
    assert number[2] >= 0
    return (number[1] << number[2]) * (-1 if number[0] else 1)


def order(first: Number, second: Number) -> int | None:
    """-1, 0 or 1; None when unordered. The zeros are equal."""
    if first is None or second is None:
        return None
    keys = []
    for sign, mantissa, exponent in (first, second):
        keys.append((0 if mantissa == 0 else -1 if sign else 1, sign, mantissa, exponent))
    if keys[0][0] != keys[1][0] or keys[0][0] == 0:
        return (keys[0][0] > keys[1][0]) - (keys[0][0] < keys[1][0])
    if INFINITE in (first[1], second[1]):
        larger = (first[1] == INFINITE) - (second[1] == INFINITE)
        return larger * keys[0][0]
    difference = add(first, negated(second))
    assert difference is not None
    return 0 if difference[1] == 0 else -1 if difference[0] else 1


def extreme(kind: Format, greater: bool, first: int, second: int, nan_wins: bool) -> int:
    """min or max: NaN loses unless it wins, -0 is below +0."""
    numbers = kind.unpack(first), kind.unpack(second)
    if numbers[0] is None or numbers[1] is None:
        if nan_wins or numbers == (None, None):
            return kind.nan
        return second if numbers[0] is None else first
    compared = order(*numbers) or (second >> (kind.bits - 1)) - (first >> (kind.bits - 1))
    return first if (compared > 0) == greater or compared == 0 else second


def to_float(kind: Format, bits: int) -> float:
    number = kind.unpack(bits)
    if number is None:
        return math.nan
    sign, mantissa, exponent = number
    value = math.inf if mantissa == INFINITE else math.ldexp(mantissa, exponent)
    return -value if sign else value


def arithmetic(
    kind: Format, operation: Callable[..., Number], mode: str = "rn", *, ftz: bool = False
) -> Callable[..., int]:
    """An exact operation on numbers as one on bit patterns."""

    def apply(*bits: int) -> int:
        if ftz:
            bits = tuple(kind.flushed(pattern) for pattern in bits)
        result = kind.pack(operation(*(kind.unpack(pattern) for pattern in bits)), mode)
        return kind.flushed(result) if ftz else result

    return apply
