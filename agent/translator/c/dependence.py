"""Which iterations of a loop touch the same memory: proofs that they do not.

Two accesses `a[f]` and `a[g]` of different iterations meet where f = g. Their difference is a polynomial
in both iterations' counters. A counter whose coefficient exceeds everything that the rest can reach must be
equal on both sides; peeling such counters off one after the other proves that the iterations are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from agent.translator.c.accesses import Access, Accesses
from agent.translator.c.affine import TURN, Counter, Facts, Reader, extreme, parts_of
from agent.translator.c.syntax import (
    Expr,
    For,
)
from sandbox.tasks.c.polynomial import Polynomial


# Conflicts -------------------------------------------------------------------------------------------------
def _other_side(accesses: Accesses, access: Access, shared: frozenset[str]) -> Access:
    """The access in another iteration: counters that are not shared, and unknowns, get new names."""

    def renamed(poly: Polynomial) -> Polynomial:
        return poly.substitute(
            {
                s: Polynomial.symbol(s + "'")
                for s in poly.symbols
                if s.startswith(("#", "?")) and s not in shared
            }
        )

    def counter(c: Counter) -> Counter:
        key = c.key if c.key in shared else c.key + "'"
        return Counter(
            key, None if c.last is None else renamed(c.last), c.step, tuple(renamed(p) for p in c.others)
        )

    return Access(
        access.array,
        tuple(renamed(p) for p in access.index),
        access.write,
        access.update,
        tuple(counter(c) for c in access.counters),
        access.keys,
        access.statement,
        access.line,
        tuple(renamed(p) for p in access.nonzero),
    )


def disjoint(
    accesses: Accesses,
    first: Access,
    second: Access,
    target: str,
    fixed: frozenset[str],
    dims: Mapping[str, tuple[Expr | None, ...]],
    assumed: set[Polynomial] | None = None,
) -> bool:
    """Whether accesses that meet belong to the same iteration of loop `target`, given equal `fixed` loops.

    With `assumed`, a row stride that is a lone symbol may be taken to hold a row; what was taken to be
    positive is added to the set, for the host to check.
    """
    shared = frozenset(part for key in fixed for part in accesses.parts.get(key, (key,)))
    other = _other_side(accesses, second, shared)
    f, g = _comparable(first.index, other.index, dims.get(first.array, (None,)))
    equations = [a - b for a, b in zip(f, g, strict=True)]
    facts = Facts({}, list(accesses.facts))
    for counter in (*accesses.around, *first.counters, *other.counters):
        for last in (counter.last, *counter.others):
            if last is not None:
                _learn(facts, last)
    goals = set(accesses.parts.get(target, (target,)))
    if not goals:
        return False
    nonzero = [*first.nonzero, *other.nonzero]
    left = [*accesses.around, *first.counters]
    return _peel(equations, nonzero, left, list(other.counters), goals, facts, assumed)


def _learn(facts: Facts, last: Polynomial) -> None:
    """A loop whose body runs is not empty: its last counter is not negative."""
    if any(s.startswith("?") for s in last.symbols):
        return
    facts.nonnegative.append(last)
    symbols = [s for s in last.symbols if not s.startswith("#")]
    if len(symbols) == 1 and last.symbols == frozenset(symbols) and last.degree() == 1:
        slope = last.coefficient(symbols[0]).as_constant or 0
        rest = last.without(symbols[0]).as_constant
        if slope > 0 and rest is not None:
            bound = -(rest // slope)
            facts.lower[symbols[0]] = max(facts.at_least(symbols[0]), bound)


def _comparable(
    f: tuple[Polynomial, ...], g: tuple[Polynomial, ...], dims: tuple[Expr | None, ...]
) -> tuple[tuple[Polynomial, ...], tuple[Polynomial, ...]]:
    if len(f) == len(g):
        return f, g
    reader = Reader(frozenset(), frozenset(), {})
    extents = [reader.read(d) if d is not None else None for d in dims]

    def flat(index: tuple[Polynomial, ...]) -> tuple[Polynomial, ...]:
        if len(index) == 1:
            return index
        total = Polynomial()
        for level, part in enumerate(index):
            extent = extents[level] if level < len(extents) else None
            total = (total * extent if level and extent is not None else total) + part
        return (total,)

    return flat(f), flat(g)


def _peel(
    equations: list[Polynomial],
    nonzero: list[Polynomial],
    left: list[Counter],
    right: list[Counter],
    goals: set[str],
    facts: Facts,
    assumed: set[Polynomial] | None,
) -> bool:
    """Whether the equations are impossible, or make every goal equal to its other side."""
    equal: set[str] = set()
    zeros: set[str] = set()
    bounds = [c.last - Polynomial.symbol(c.key) for c in (*left, *right) if c.last is not None]

    def put(change: dict[str, Polynomial]) -> None:
        nonlocal equations, nonzero, right, left, bounds
        bounds = [b.substitute(change) for b in bounds]
        equations = [e for e in (e.substitute(change) for e in equations) if e.terms]
        nonzero = [e.substitute(change) for e in nonzero]
        left, right = ([_replaced(c, change) for c in side if c.key not in change] for side in (left, right))

    for _ in range(2 * (len(left) + len(right)) + 4):
        ranges = [*left, *(c for c in right if c.key.endswith("'"))]
        if any(_never(e, ranges, facts) for e in equations):
            return True
        if any(
            n == e or n == -e or not n.terms for n in nonzero for e in equations or [Polynomial.constant(1)]
        ):
            return True
        if any(_negative(a) or _negative(a + b) for a in bounds for b in bounds):
            return True
        found = _forced_equal(equations, left, right, ranges, facts, assumed)
        if found is not None:
            keep, drop = found
            if drop == keep + "'":  # a counter and its number of turns go together
                base = keep.removesuffix(TURN)
                put({k + "'": Polynomial.symbol(k) for k in (base, base + TURN)})
                equal.add(base)
            else:
                put({drop: Polynomial.symbol(keep)})
            if goals <= equal:
                return True
            continue
        parts = _by_stride(equations, ranges, facts)
        if parts is not None:
            equations = parts
            continue
        zero = _forced_zero(equations, ranges, facts)
        if zero is None:
            break
        put({key: Polynomial() for key in zero})
        zeros |= zero
        equal |= {k for k in zeros if k + "'" in zeros}
        if goals <= equal:
            return True
    return False


def _negative(value: Polynomial) -> bool:
    known = value.as_constant
    return known is not None and known < 0


def _replaced(counter: Counter, change: Mapping[str, Polynomial]) -> Counter:
    last = None if counter.last is None else counter.last.substitute(change)
    return Counter(counter.key, last, counter.step, tuple(p.substitute(change) for p in counter.others))


def _by_stride(equations: list[Polynomial], ranges: list[Counter], facts: Facts) -> list[Polynomial] | None:
    """`m * p + q = 0` with |q| < m: both p and q are zero."""
    for position, equation in enumerate(equations):
        strides = {
            Polynomial(((tuple((n, p) for n, p in monomial if not n.startswith(("#", "?", "@"))), 1),))
            for monomial, _ in equation.terms
        }
        for stride in sorted(strides, key=lambda p: (p.degree(), str(p))):
            if stride.as_constant is not None:
                continue
            outer, rest = parts_of(equation, stride)
            if not outer.terms or not rest.terms:
                continue
            high = extreme(rest, ranges, facts, largest=True)
            low = extreme(rest, ranges, facts, largest=False)
            if high is None or low is None:
                continue
            if facts.is_positive(stride - high) and facts.is_positive(stride + low):
                return [*equations[:position], outer, rest, *equations[position + 1 :]]
    return None


def _forced_zero(equations: list[Polynomial], ranges: list[Counter], facts: Facts) -> set[str] | None:
    """Counters in a sum of terms that are not negative which is zero, perhaps after one elimination."""
    keys = {c.key for c in ranges}
    candidates = list(equations)
    for equation in equations:
        for key in sorted(equation.symbols & keys):
            slope = equation.coefficient(key).as_constant
            if slope in (1, -1) and equation.degree(key) == 1:
                value = equation.without(key) * -slope
                candidates += [e.substitute({key: value}) for e in equations if e is not equation]
    for equation in candidates:
        for sign in (1, -1):
            signed = equation * sign
            constant_part = any(not monomial for monomial, _ in signed.terms)
            linear = signed.symbols <= keys and signed.degree() == 1
            if linear and signed.terms and signed.has_sign(1) and not constant_part:
                return set(signed.symbols)
    return None


def _never(equation: Polynomial, ranges: list[Counter], facts: Facts) -> bool:
    """Whether the two subscripts can never be equal."""
    known = equation.as_constant
    if known is not None:
        return known != 0
    low = extreme(equation, ranges, facts, largest=False)
    if low is not None and facts.is_positive(low):
        return True
    high = extreme(equation, ranges, facts, largest=True)
    if high is not None and facts.is_positive(-high):
        return True
    steps = {c.key: c.step for c in ranges}
    divisor, rest = 0, 0
    for monomial, factor in equation.terms:
        if not monomial:
            rest = factor
        elif len(monomial) == 1 and monomial[0][0] in steps and monomial[0][1] == 1:
            divisor = gcd(divisor, factor * steps[monomial[0][0]])
        else:
            divisor = gcd(divisor, factor)
    return divisor > 1 and rest % divisor != 0


def _forced_equal(
    equations: list[Polynomial],
    left: list[Counter],
    right: list[Counter],
    ranges: list[Counter],
    facts: Facts,
    assumed: set[Polynomial] | None,
) -> tuple[str, str] | None:
    """A counter of the one side and one of the other that must be equal."""
    unknown = [
        Counter(s, None)
        for s in {s for e in equations for s in e.symbols if s.startswith("?") and not s.endswith("'")}
    ]
    primed = {c.key: c for c in right} | {c.key + "'": Counter(c.key + "'", None) for c in unknown}
    for equation in equations:
        for counter in (*left, *unknown):
            slope = equation.coefficient(counter.key)
            if equation.degree(counter.key) != 1 or any(s.startswith(("#", "?")) for s in slope.symbols):
                continue
            if not facts.is_positive(slope):
                slope_sign = -1
                if not facts.is_positive(-slope):
                    continue
            else:
                slope_sign = 1
            for key, partner in sorted(primed.items(), key=lambda kv: kv[0] != counter.key + "'"):
                if not key.endswith("'") or equation.coefficient(key) != -slope:
                    continue
                if partner.step != counter.step:
                    continue
                rest = equation - slope * (Polynomial.symbol(counter.key) - Polynomial.symbol(key))
                size = slope * slope_sign * counter.step
                high = extreme(rest, ranges, facts, largest=True)
                low = extreme(rest, ranges, facts, largest=False)
                if high is None or low is None:
                    continue
                if facts.is_positive(size - high) and facts.is_positive(size + low):
                    return counter.key, key
                if assumed is not None and _may_assume(size, high, low):
                    assumed |= {size - high, size + low}
                    return counter.key, key
    return None


def _may_assume(size: Polynomial, high: Polynomial, low: Polynomial) -> bool:
    """A lone stride (`lda`) against a range of other sizes: the host can check that it is long enough."""
    lone = len(size.terms) == 1 and size.degree() == 1
    names = high.symbols | low.symbols
    return (
        lone
        and bool(names)
        and names.isdisjoint(size.symbols)
        and all(s.isidentifier() for s in names | size.symbols)
    )


@dataclass(frozen=True)
class Conflict:
    """Two accesses that may meet in different iterations."""

    first: Access
    second: Access


def conflicts(
    accesses: Accesses,
    target: str,
    fixed: frozenset[str],
    dims: Mapping[str, tuple[Expr | None, ...]],
    same_memory: Mapping[str, frozenset[str]] | None = None,
    assumed: set[Polynomial] | None = None,
) -> list[Conflict]:
    """Pairs inside loop `target` that may meet in two of its iterations (equal in the `fixed` loops)."""
    inside = [a for a in accesses.found if target in a.keys]
    arrays = {a.array for a in inside if a.write}
    found: list[Conflict] = []
    for position, first in enumerate(inside):
        for second in inside[position:]:
            if not (first.write or second.write):
                continue
            if first.array != second.array:
                related = same_memory.get(first.array, frozenset()) if same_memory else frozenset()
                if second.array not in related:
                    continue
            elif first.array not in arrays:
                continue
            if not disjoint(accesses, first, second, target, fixed, dims, assumed):
                found.append(Conflict(first, second))
    return found


def key_of(accesses: Accesses, loop: For) -> str:
    """The key of a loop of the nest (by identity)."""
    for key, candidate in accesses.loops.items():
        if candidate is loop:
            return key
    raise KeyError(loop.var.name)
