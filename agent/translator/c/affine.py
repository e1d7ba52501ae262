"""Subscripts as polynomials in loop counters and sizes, and proofs about their signs and ranges.

A loop's variable is `lo + counter` (or `lo - counter`), with the counter from 0 to its last value in steps of
`step`. Names that a nest never writes are symbols. What changes in an unknown way (`perm[i]`) gets a symbol
of its own, marked with "?".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from agent.translator.c.syntax import Binary, Cast, Cond, Expr, For, Load, Num, Unary, Var, constant, walk
from sandbox.tasks.c.polynomial import ONE, ZERO, Monomial, Polynomial


@dataclass(frozen=True)
class Counter:
    """A loop's iterations: symbol `key` runs from 0 to `last` (None: not known) in steps of `step`."""

    key: str
    last: Polynomial | None
    step: int = 1
    others: tuple[Polynomial, ...] = ()  # further upper bounds of the same counter


#: Ends the name of a counter's number of turns, for loops that do not go by one.
TURN = ":"


class Split(Exception):
    """A division asks that `key` be taken apart by `divisor`: key = quotient * divisor + remainder."""

    def __init__(self, key: str, divisor: Polynomial) -> None:
        super().__init__(key)
        self.key = key
        self.divisor = divisor


@dataclass
class Facts:
    """What is known of symbols: lower bounds, and polynomials that are not negative."""

    lower: dict[str, int]
    nonnegative: list[Polynomial]
    _proofs: dict[tuple[Polynomial, int], bool] = field(default_factory=dict)

    def at_least(self, symbol: str) -> int:
        return self.lower.get(symbol, 0 if symbol.startswith(("#", "?", "@")) else 1)

    def is_nonnegative(self, value: Polynomial, depth: int = 3) -> bool:
        """A proof, not a guess: False means only that none was found."""
        known = self._proofs.get((value, depth))
        if known is None:
            known = self._proofs[value, depth] = self._prove(value, depth)
        return known

    def _prove(self, value: Polynomial, depth: int) -> bool:
        if any(s.startswith("?") for s in value.symbols):
            return False
        shifted = value.substitute({s: Polynomial.symbol(s) + self.at_least(s) for s in value.symbols})
        if shifted.has_sign(1):
            return True
        if depth == 0:
            return False
        for monomial, factor in value.terms:
            if factor < 0:
                for part in self._against(monomial, factor):
                    if self.is_nonnegative(value - part, depth - 1):
                        return True
        return False

    def _against(self, monomial: Monomial, factor: int) -> Iterator[Polynomial]:
        """Multiples of facts that hold this negative term, so that taking them away removes it."""
        have = dict(monomial)
        for fact in dict.fromkeys(self.nonnegative):
            for other, slope in fact.terms:
                if slope < 0 and factor % slope == 0 and all(have.get(n, 0) >= p for n, p in other):
                    left = {n: p - dict(other).get(n, 0) for n, p in have.items()}
                    rest = tuple(sorted((n, p) for n, p in left.items() if p))
                    yield fact * Polynomial(((rest, factor // slope),))

    def is_positive(self, value: Polynomial) -> bool:
        return self.is_nonnegative(value - 1)


def extreme(value: Polynomial, counters: Iterable[Counter], facts: Facts, largest: bool) -> Polynomial | None:
    """The largest (smallest) value over all counters, innermost given last. None where no bound is known."""
    for counter in reversed(list(counters)):
        degree = value.degree(counter.key)
        if degree == 0:
            continue
        slope = value.coefficient(counter.key)
        if degree > 1:
            return None
        rises = facts.is_nonnegative(slope)
        if not rises and not facts.is_nonnegative(-slope):
            return None
        if rises == largest:
            if counter.last is None:
                return None
            value = value.substitute({counter.key: counter.last})
        else:
            value = value.without(counter.key)
    return None if any(s.startswith("?") for s in value.symbols) else value


class Reader:
    """Turns index expressions into polynomials under the current values of scalars."""

    def __init__(
        self, written: frozenset[str], arrays_written: frozenset[str], splits: Mapping[str, Polynomial]
    ):
        self.values: dict[str, Polynomial] = {}
        self.written = written  # scalars that the nest writes somewhere
        self.arrays_written = arrays_written
        self.splits = splits
        self.count = 0
        self.facts: list[Polynomial] = []
        self.ranges: list[Counter] = []  # of the loops around
        self.steps: dict[str, int] = {}  # of counters that do not go by one

    def unknown(self, text: str = "") -> Polynomial:
        self.count += 1
        return Polynomial.symbol(f"?{self.count}{text}")

    def expand(self, key: str, last: Polynomial | None) -> tuple[Polynomial, list[Counter]]:
        """A counter as a polynomial, taken apart as divisions asked."""
        divisor = self.splits.get(key)
        if divisor is None:
            return Polynomial.symbol(key), [Counter(key, last)]
        quotient, remainder = f"{key}/", f"{key}%"
        high: Polynomial | None = None
        if last is not None and (divided := divide(last + 1, divisor)) is not None:
            high = divided - 1
        left, left_counters = self.expand(quotient, high)
        right, right_counters = self.expand(remainder, divisor - 1)
        return left * divisor + right, [*left_counters, *right_counters]

    def read(self, expr: Expr) -> Polynomial:
        """Never fails: what is not polynomial becomes a symbol. Raises Split."""
        known = constant(expr)
        if known is not None:
            return Polynomial.constant(known)
        match expr:
            case Var():
                return self._name(expr)
            case Cast() if expr.type.is_integer and expr.arg.type.is_integer:
                return self.read(expr.arg)
            case Unary(op="-"):
                return -self.read(expr.arg)
            case Binary(op="+"):
                return self.read(expr.left) + self.read(expr.right)
            case Binary(op="-"):
                return self.read(expr.left) - self.read(expr.right)
            case Binary(op="*"):
                return self.read(expr.left) * self.read(expr.right)
            case Binary(op="<<") if (shift := constant(expr.right)) is not None:
                return self.read(expr.left) * (1 << shift)
            case Binary(op="/" | ">>" | "%"):
                return self._divided(expr)
            case _:
                return self._opaque(expr)

    def _name(self, expr: Var) -> Polynomial:
        if expr.name in self.values:
            return self.values[expr.name]
        if expr.name in self.written:
            return self.unknown(expr.name)
        return Polynomial.symbol(expr.name)

    def _divided(self, expr: Binary) -> Polynomial:
        left, right = self.read(expr.left), self.read(expr.right)
        if expr.op == ">>":
            shift = right.as_constant
            if shift is None or not 0 <= shift < 31:
                return self._opaque(expr)
            right = Polynomial.constant(1 << shift)
        if right == ZERO or any(s.startswith(("#", "?")) for s in right.symbols):
            return self._opaque(expr)
        turn = self._turn(left, right) if expr.op != "%" else None
        if turn is not None:
            return turn
        quotient, remainder = parts_of(left, right)
        keys = [s for s in remainder.symbols if s.startswith("#")]
        if not keys and not any(s.startswith("?") for s in left.symbols):
            if remainder != ZERO and not _constant_below(remainder, right):
                return self._invariant_division(expr, left, right)
            return remainder if expr.op == "%" else quotient
        facts = Facts({}, [])
        top = extreme(remainder, self.ranges, facts, largest=True)
        low = extreme(remainder, self.ranges, facts, largest=False)
        if (
            top is not None
            and low is not None
            and facts.is_positive(right - top)
            and facts.is_nonnegative(low)
        ):
            return remainder if expr.op == "%" else quotient
        for key in keys:
            slope = remainder.coefficient(key)
            part = divide(right, slope)
            if part is not None and key not in self.splits and key.count("/") + key.count("%") < 6:
                raise Split(key, part)
        return self._opaque(expr)

    def _turn(self, left: Polynomial, right: Polynomial) -> Polynomial | None:
        """`i / 2` in a loop that goes by twos from an even start: how many turns there were before."""
        step = right.as_constant
        keys = [s for s in left.symbols if self.steps.get(s) == step]
        rest = left.without(keys[0]).as_constant if len(keys) == 1 else None
        if step is None or rest is None or rest % step or left.coefficient(keys[0]).as_constant != 1:
            return None
        return Polynomial.symbol(keys[0] + TURN) + rest // step

    def _invariant_division(self, expr: Binary, left: Polynomial, right: Polynomial) -> Polynomial:
        """`n / 2`: a symbol h, with 2 h <= n <= 2 h + 1 remembered."""
        if expr.op == "%":
            return Polynomial.symbol(f"(({left}) % ({right}))")
        symbol = Polynomial.symbol(f"(({left}) / ({right}))")
        fact = left - symbol * right
        if fact not in self.facts:
            self.facts += [fact, symbol * right + right - 1 - left]
        return symbol

    def _opaque(self, expr: Expr) -> Polynomial:
        parts = _names(expr)
        moving = any(
            (self.values.get(n) is not None and any(s.startswith(("#", "?")) for s in self.values[n].symbols))
            or (n not in self.values and n in self.written)
            for n in parts[0]
        )
        if moving or parts[1] & self.arrays_written:
            return self.unknown()
        return Polynomial.symbol(f"<{expr!r}>")


def minimum(expr: Expr) -> tuple[Expr, ...]:
    """The two sides of `a < b ? a : b`; otherwise the expression alone."""
    if isinstance(expr, Cond) and isinstance(expr.test, Binary):
        test = expr.test
        sides = (test.left, test.right)
        if test.op in ("<", "<=") and (expr.then, expr.other) == sides:
            return sides
        if test.op in (">", ">=") and (expr.other, expr.then) == sides:
            return sides
    return (expr,)


def counter_of(loop: For, key: str, reader: Reader) -> tuple[Polynomial, list[Counter]]:
    """(the loop's variable as a polynomial, the counters that it is made of). Raises Split."""
    lo = reader.read(loop.lo)
    step = constant(loop.step)
    inclusive = loop.relation in ("<=", ">=")
    lasts: list[Polynomial] = []
    for bound in minimum(loop.bound):
        far = reader.read(bound)
        span = lo - far if loop.down else far - lo
        lasts.append(span if inclusive else span - 1)
    lasts = [p for p in lasts if not any(s.startswith("?") for s in p.symbols)]
    lasts.sort(key=lambda p: len(p.symbols))
    last = lasts[0] if lasts else None
    if any(s.startswith("?") for s in lo.symbols):
        return reader.unknown(loop.var.name), []
    if step is None:
        stride = reader.read(loop.step)
        if any(s.startswith(("#", "?")) for s in stride.symbols) or loop.relation == "!=":
            return reader.unknown(loop.var.name), []
        return lo + stride * Polynomial.symbol(key), [Counter(key, None)]
    if loop.down or abs(step) != 1:
        counter = Counter(key, last, abs(step), tuple(lasts[1:]))
        reader.steps[key] = abs(step)
        symbol = Polynomial.symbol(key)
        turns = [Counter(key + TURN, None)] if abs(step) != 1 else []
        return (lo - symbol if loop.down else lo + symbol), [counter, *turns]
    value, counters = reader.expand(key, last)
    if len(counters) == 1:
        counters = [Counter(key, last, 1, tuple(lasts[1:]))]
    return lo + value, counters


def divide(value: Polynomial, divisor: Polynomial) -> Polynomial | None:
    """Exact division; None where it does not come out even."""
    quotient, remainder = parts_of(value, divisor)
    return quotient if remainder == ZERO else None


def parts_of(value: Polynomial, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Terms that a one-term divisor divides, divided; and the rest."""
    if len(divisor.terms) != 1:
        return (ONE, ZERO) if value == divisor else (ZERO, value)
    monomial, factor = divisor.terms[0]
    powers = dict(monomial)
    quotient, remainder = ZERO, ZERO
    for term, coefficient in value.terms:
        have = dict(term)
        if coefficient % factor == 0 and all(have.get(n, 0) >= p for n, p in powers.items()):
            left = {n: p - powers.get(n, 0) for n, p in have.items()}
            quotient += Polynomial(
                ((tuple(sorted((n, p) for n, p in left.items() if p)), coefficient // factor),)
            )
        else:
            remainder += Polynomial(((term, coefficient),))
    return quotient, remainder


def _constant_below(remainder: Polynomial, divisor: Polynomial) -> bool:
    left, right = remainder.as_constant, divisor.as_constant
    return left is not None and right is not None and 0 <= left < right


def _names(expr: Expr) -> tuple[set[str], set[str]]:
    scalars = {n.name for n in walk(expr) if isinstance(n, Var)}
    arrays = {n.array for n in walk(expr) if isinstance(n, Load)}
    return scalars, arrays


__all__ = ["Counter", "Facts", "Num", "Reader", "Split", "counter_of", "divide", "extreme", "minimum"]
