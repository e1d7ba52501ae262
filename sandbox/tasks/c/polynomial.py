"""Integer polynomials in named symbols: the language of extents, strides and trip counts.

A symbol is a C identifier or, for what is not polynomial, a parenthesised C expression over integers such as
"(n / 2)" or "min(a, b)": an opaque atom that prints as it stands; `sandbox.tasks.expressions` evaluates it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sandbox.tasks import expressions

Monomial = tuple[tuple[str, int], ...]  # (symbol, power), sorted by symbol; () is the constant term


@dataclass(frozen=True)
class Polynomial:
    """Immutable, hashable, in normal form: equal polynomials are equal objects by `==`."""

    terms: tuple[tuple[Monomial, int], ...] = ()  # sorted by monomial; no zero coefficients

    @staticmethod
    def constant(value: int) -> Polynomial:
        return Polynomial((((), value),) if value else ())

    @staticmethod
    def symbol(name: str) -> Polynomial:
        return Polynomial(((((name, 1),), 1),))

    def __add__(self, other: Polynomial | int) -> Polynomial:
        return _collect([*self.terms, *as_polynomial(other).terms])

    def __radd__(self, other: int) -> Polynomial:
        return self + other

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple((monomial, -factor) for monomial, factor in self.terms))

    def __sub__(self, other: Polynomial | int) -> Polynomial:
        return self + -as_polynomial(other)

    def __rsub__(self, other: int) -> Polynomial:
        return -self + other

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        return _collect((_times(a, b), p * q) for a, p in self.terms for b, q in as_polynomial(other).terms)

    def __rmul__(self, other: int) -> Polynomial:
        return self * other

    @property
    def symbols(self) -> frozenset[str]:
        """Identifiers and opaque atoms, as they stand."""
        return frozenset(name for monomial, _ in self.terms for name, _ in monomial)

    @property
    def as_constant(self) -> int | None:
        """Its value when no symbol is in it, else None."""
        if not self.terms:
            return 0
        return self.terms[0][1] if self.terms[0][0] == () and len(self.terms) == 1 else None

    def degree(self, symbol: str | None = None) -> int:
        """Highest power of `symbol`, or highest total power; 0 for constants."""
        return max(
            (sum(p for name, p in monomial if symbol in (None, name)) for monomial, _ in self.terms),
            default=0,
        )

    def coefficient(self, symbol: str, power: int = 1) -> Polynomial:
        """What multiplies `symbol ** power`; power 0 gives the part without the symbol."""
        kept = []
        for monomial, factor in self.terms:
            if dict(monomial).get(symbol, 0) == power:
                kept.append((tuple((n, p) for n, p in monomial if n != symbol), factor))
        return _collect(kept)

    def without(self, symbol: str) -> Polynomial:
        return self.coefficient(symbol, 0)

    def substitute(self, values: Mapping[str, Polynomial | int]) -> Polynomial:
        """Symbols replaced, all at once. Opaque atoms are replaced only as a whole."""
        result = Polynomial()
        for monomial, factor in self.terms:
            product = Polynomial.constant(factor)
            for name, power in monomial:
                value = as_polynomial(values[name]) if name in values else Polynomial.symbol(name)
                for _ in range(power):
                    product = product * value
            result = result + product
        return result

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Raises expressions.ExpressionError for a symbol without a value, or an atom that divides
        by zero."""
        total = 0
        for monomial, factor in self.terms:
            for name, power in monomial:
                value = values[name] if name in values else expressions.evaluate(name, values)
                factor *= value**power
            total += factor
        return total

    def has_sign(self, sign: int) -> bool:
        """Whether every coefficient has this sign (or is absent): enough, for symbols that are never
        negative."""
        return all(factor * sign > 0 for _, factor in self.terms)

    def to_c(self) -> str:
        """As a C (and Python) expression, highest degree first: "n * m - 2 * n + 1"."""
        if not self.terms:
            return "0"
        ordered = sorted(self.terms, key=lambda t: (-sum(p for _, p in t[0]), t[0]))
        first = next((i for i, (_, factor) in enumerate(ordered) if factor > 0), 0)
        ordered.insert(0, ordered.pop(first))  # "m - n", never "-n + m"
        parts: list[str] = []
        for monomial, factor in ordered:
            names = [name for name, power in monomial for _ in range(power)]
            magnitude = abs(factor)
            words = ([str(magnitude)] if magnitude != 1 or not names else []) + names
            sign = ("-" if factor < 0 else "") if not parts else (" - " if factor < 0 else " + ")
            parts.append(sign + " * ".join(words))
        return "".join(parts)

    def __str__(self) -> str:
        return self.to_c()


ZERO = Polynomial()
ONE = Polynomial.constant(1)


def as_polynomial(value: Polynomial | int) -> Polynomial:
    return value if isinstance(value, Polynomial) else Polynomial.constant(value)


def _times(a: Monomial, b: Monomial) -> Monomial:
    powers: Counter[str] = Counter(dict(a))
    powers.update(dict(b))
    return tuple(sorted(powers.items()))


def _collect(terms: Iterable[tuple[Monomial, int]]) -> Polynomial:
    sums: dict[Monomial, int] = {}
    for monomial, factor in terms:
        sums[monomial] = sums.get(monomial, 0) + factor
    return Polynomial(tuple(sorted((m, f) for m, f in sums.items() if f)))
