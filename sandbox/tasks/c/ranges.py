"""Integers that vary while a program runs, and how large polynomials in them can get.

A varying symbol (a loop's counter, a clamped or loaded value) is called "name$k"; every other symbol is a
size: an integer parameter. Bounds are polynomials in sizes and in symbols made earlier, so that eliminating
the newest symbol first ends in sizes alone. Where a sign cannot be read off, it is sampled; inference is
checked afterwards by running the reference against guard pages, so a wrong guess is found, not believed.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sandbox.tasks.c.polynomial import ONE, ZERO, Polynomial
from sandbox.tasks.expressions import ExpressionError

_SAMPLES = 32
_CANDIDATES = 4  # bounds of one symbol that are tried


@dataclass(frozen=True)
class Range:
    """Inclusive. Every entry holds; () when nothing is known on that side."""

    lows: tuple[Polynomial, ...] = ()
    highs: tuple[Polynomial, ...] = ()


class Ranges:
    """All varying symbols of one analysis, in the order in which they were made."""

    def __init__(self) -> None:
        self._ranges: dict[str, Range] = {}
        self._order: dict[str, int] = {}
        self._samples = [_Sample(self, seed) for seed in range(_SAMPLES)]
        self._assumed: list[Polynomial] = []

    def fresh(self, name: str, known: Range) -> Polynomial:
        symbol = f"{name}${len(self._order)}"
        self._order[symbol] = len(self._order)
        self._ranges[symbol] = known
        return Polynomial.symbol(symbol)

    def of(self, symbol: str) -> Range | None:
        """None for sizes."""
        return self._ranges.get(symbol)

    def varies(self, value: Polynomial) -> bool:
        return any(symbol in self._ranges for symbol in value.symbols)

    @contextmanager
    def assuming(self, facts: list[tuple[str, bool, Polynomial]]) -> Iterator[None]:
        """While this lasts, each (symbol, is_high, bound) holds as well."""
        before = {symbol: self._ranges[symbol] for symbol, _, _ in facts}
        for symbol, is_high, bound in facts:
            self.learn(symbol, is_high, bound)
        try:
            yield
        finally:
            self._ranges.update(before)

    def learn(self, symbol: str, is_high: bool, bound: Polynomial) -> None:
        known = self._ranges[symbol]
        if is_high and bound not in known.highs:
            self._ranges[symbol] = Range(known.lows, (*known.highs, bound))
        elif not is_high and bound not in known.lows:
            self._ranges[symbol] = Range((*known.lows, bound), known.highs)

    def assume(self, value: Polynomial) -> None:
        """`value >= 0` wherever it matters, as for the trips of a loop that is entered. Sizes only."""
        if not self.varies(value) and value.as_constant is None and value not in self._assumed:
            self._assumed.append(value)

    def facts(self, difference: Polynomial) -> list[tuple[str, bool, Polynomial]]:
        """What `difference >= 0` says of each varying symbol that stands in it with factor 1 or -1."""
        found = []
        for symbol in difference.symbols:
            if symbol not in self._ranges or difference.degree(symbol) != 1:
                continue
            factor = difference.coefficient(symbol).as_constant
            if factor not in (1, -1):
                continue
            # symbol <= rest (factor -1) or symbol >= -rest; in symbols that were there before it.
            for bound in self._without_newer(difference.without(symbol), symbol, 0):
                found.append((symbol, factor == -1, bound if factor == -1 else -bound))
        return found

    def sign(self, value: Polynomial) -> int:
        """1 when never negative, -1 when never positive, 0 when it may be either (as far as samples show)."""
        if value.has_sign(1) and not self.varies(value):
            return 1
        known = self._sampled(value)
        if all(v >= 0 for v in known):
            return 1
        return -1 if all(v <= 0 for v in known) else 0

    def upper(self, value: Polynomial) -> Polynomial | None:
        """The largest value, in sizes only; None when it is not bounded."""
        return self._bound(value, True, 0)

    def lower(self, value: Polynomial) -> Polynomial | None:
        return self._bound(value, False, 0)

    def largest(self, values: list[Polynomial]) -> Polynomial:
        """The largest of several; an atom "max(a, b)" where none is always so."""
        return self._extreme(values, True)

    def smallest(self, values: list[Polynomial]) -> Polynomial:
        return self._extreme(values, False)

    def _extreme(self, values: list[Polynomial], is_max: bool) -> Polynomial:
        best = values[0]
        for value in values[1:]:
            sign = self.sign(value - best)
            if sign == 0:
                best = Polynomial.symbol(f"{'max' if is_max else 'min'}({best}, {value})")
            elif (sign > 0) == is_max:
                best = value
        return best

    def _bound(self, value: Polynomial, is_upper: bool, depth: int) -> Polynomial | None:
        varying = [symbol for symbol in value.symbols if symbol in self._ranges]
        if not varying:
            return value
        if depth > 24:
            return None
        newest = max(varying, key=self._order.__getitem__)
        degree = value.degree(newest)
        slopes = [self.sign(value.coefficient(newest, power)) for power in range(1, degree + 1)]
        if 0 in slopes or len(set(slopes)) > 1:
            return None
        known = self._ranges[newest]
        bounds = known.highs if (slopes[0] > 0) == is_upper else known.lows
        results = []
        for bound in bounds[-_CANDIDATES:]:
            result = self._bound(value.substitute({newest: bound}), is_upper, depth + 1)
            if result is not None:
                results.append(result)
        if not results:
            return None
        return self._tightest(results, is_upper)

    def _tightest(self, values: list[Polynomial], is_upper: bool) -> Polynomial:
        best = values[0]
        for value in values[1:]:
            total = sum(self._sampled(value - best))
            if (total < 0) == is_upper and total != 0:
                best = value
        return best

    def _sampled(self, value: Polynomial) -> list[int]:
        """Values at the samples that agree with what is assumed."""
        agreeing = [
            sample
            for sample in self._samples
            if all((known := sample.value(assumed)) is None or known >= 0 for assumed in self._assumed)
        ]
        seen = [sample.value(value) for sample in agreeing or self._samples]
        return [number for number in seen if number is not None]

    def _without_newer(self, value: Polynomial, symbol: str, depth: int) -> list[Polynomial]:
        """Upper bounds of `value` in symbols older than `symbol`."""
        place = self._order[symbol]
        newer = [other for other in value.symbols if self._order.get(other, -1) > place]
        if not newer:
            return [value]
        newest = max(newer, key=self._order.__getitem__)
        if depth > _CANDIDATES or value.degree(newest) != 1:
            return []
        sign = self.sign(value.coefficient(newest))
        known = self._ranges[newest]
        bounds = {1: known.highs, -1: known.lows, 0: ()}[sign]
        return [
            result
            for bound in bounds[-_CANDIDATES:]
            for result in self._without_newer(value.substitute({newest: bound}), symbol, depth + 1)
        ]


class _Sample(dict[str, int]):
    """One assignment of values to all symbols, made up as they are asked for."""

    def __init__(self, ranges: Ranges, seed: int) -> None:
        super().__init__()
        self._ranges_of = ranges
        self._seed = seed

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name.isidentifier() or "$" in name)

    def __missing__(self, name: str) -> int:
        dice = random.Random(zlib.crc32(name.encode()) * 31 + self._seed)
        known = self._ranges_of.of(name)
        if known is None:
            value = dice.choice((3, 5, 8, 17, 33, 64)) + dice.randrange(4)
        else:
            low = self.value(known.lows[0]) if known.lows else None
            high = self.value(known.highs[0]) if known.highs else None
            low = low if low is not None else (min(0, high) if high is not None else 0)
            high = high if high is not None else low + 16
            value = dice.choice((low, max(low, high), dice.randint(low, max(low, high))))
        self[name] = value
        return value

    def value(self, polynomial: Polynomial) -> int | None:
        try:
            return polynomial.evaluate(self)
        except (ExpressionError, RecursionError):
            return None


NOTHING = Range()
ZERO_OR_ONE = Range((ZERO,), (ONE,))
