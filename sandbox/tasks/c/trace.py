"""Extents that the source does not tell, found by running: which elements are touched at many small sizes.

The program is compiled so that it reports every access, and gets arrays with room around them. The largest
index touched is then fitted by a polynomial in the integer parameters that must be exact at every size, also
at those it was not fitted to; where the index hangs on the data (a binary search), by the first simple
expression that is never exceeded and at least once reached. The probe against guard pages comes afterwards
in either case.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from sandbox.cancellation import Cancellation
from sandbox.limits import REFERENCE
from sandbox.tasks import draws, expressions
from sandbox.tasks.base import Array, Inputs
from sandbox.tasks.c.build import build_traced
from sandbox.tasks.c.formals import Formal
from sandbox.tasks.c.parse import Program
from sandbox.tasks.c.polynomial import ONE, Polynomial
from sandbox.tasks.c.runner import Call, call_reference

_SEED = b"trace"
_FILLED = 1 << 15  # elements of every array that hold values; zeros behind them
_TRIES = 48
_SECONDS = 0.5
_SIZES = (2, 3, 4, 5, 6, 7, 9, 11, 12, 16, 17)
_MOST_SYMBOLS = 4


def trace_extents(
    program: Program,
    entry: str,
    formals: Sequence[Formal],
    unknown: Sequence[str],
    inputs: Inputs,
    cancel: Cancellation,
) -> dict[str, str]:
    """Expressions for those of the `unknown` arrays for which one could be found."""
    symbols = [f.name for f in formals if f.is_integer_scalar and f.name not in inputs.scalars]
    if not symbols or len(symbols) > _MOST_SYMBOLS:
        return {}
    built = build_traced(program, entry, formals, cancel)
    calls = [_call(formals, symbols, inputs, number) for number in range(_TRIES)]
    outcomes = call_reference(
        built,
        formals,
        calls,
        at_end=False,
        poison=0,
        seconds=_SECONDS,
        limits=REFERENCE,
        cancel=cancel,
    )
    by_name = {f.name: f for f in formals}
    found: dict[str, str] = {}
    for name in unknown:
        width = np.dtype(by_name[name].dtype).itemsize
        seen: list[tuple[Mapping[str, int], int]] = []
        for call, outcome in zip(calls, outcomes, strict=True):
            if outcome.status == "ok" and outcome.arrays[name][0] <= outcome.arrays[name][1]:
                sizes = {symbol: int(call.scalars[symbol]) for symbol in symbols}
                seen.append((sizes, int(outcome.arrays[name][1]) // width + 1))
        text = _exact(seen, symbols) or _covering(seen, symbols)
        if text is not None:
            found[name] = text
    return found


def _call(formals: Sequence[Formal], symbols: Sequence[str], inputs: Inputs, number: int) -> Call:
    rng = draws.generator(_SEED, number)
    scalars: dict[str, int | float] = {}
    arrays: dict[str, Array] = {}
    for formal in formals:
        if formal.is_array:
            is_float = formal.dtype.startswith("float")
            values = rng.standard_normal(_FILLED) if is_float else rng.integers(0, 4, _FILLED)
            arrays[formal.name] = values.astype(formal.dtype)
        elif formal.name in symbols:
            scalars[formal.name] = int(rng.choice(_SIZES))
        else:
            scalars[formal.name] = inputs.scalars.get(formal.name, 1)
    return Call(scalars, arrays, {f.name: _FILLED for f in formals if f.is_array})


def _exact(seen: Sequence[tuple[Mapping[str, int], int]], symbols: Sequence[str]) -> str | None:
    """A polynomial of degree 2 (or, with few symbols, 3) with whole or half coefficients that is right
    everywhere."""
    for degree in (1, 2, 3) if len(symbols) < 3 else (1, 2):
        basis = [
            _product(chosen)
            for power in range(degree + 1)
            for chosen in itertools.combinations_with_replacement(symbols, power)
        ]
        if len(seen) < 2 * len(basis):
            return None
        table = np.array([[term.evaluate(sizes) for term in basis] for sizes, _ in seen], dtype=np.float64)
        wanted = np.array([extent for _, extent in seen], dtype=np.float64)
        half = len(basis) + (len(seen) - len(basis)) // 2  # fitted to these, checked on all
        solution = np.linalg.lstsq(table[:half], wanted[:half], rcond=None)[0]
        factors = [Fraction(round(2 * float(value)), 2) for value in solution]
        doubled = Polynomial()
        for term, factor in zip(basis, factors, strict=True):
            doubled = doubled + term * int(2 * factor)
        if all(doubled.evaluate(sizes) == 2 * extent for sizes, extent in seen):
            return _halved(doubled)
    return None


def _covering(seen: Sequence[tuple[Mapping[str, int], int]], symbols: Sequence[str]) -> str | None:
    """The first of a few simple expressions that is never exceeded and reached at least once."""
    if len(seen) < _TRIES // 4:
        return None
    singles = list(symbols)
    pairs = [f"{a} * {b}" for a, b in itertools.combinations_with_replacement(symbols, 2)]
    for text in (*singles, *(f"{s} + 1" for s in singles), *pairs):
        bounds = [expressions.evaluate(text, sizes) for sizes, _ in seen]
        extents = [extent for _, extent in seen]
        reached = sum(bound == extent for bound, extent in zip(bounds, extents, strict=True))
        if all(b >= e for b, e in zip(bounds, extents, strict=True)) and reached:
            return text
    return None


def _product(symbols: Sequence[str]) -> Polynomial:
    result = ONE
    for symbol in symbols:
        result = result * Polynomial.symbol(symbol)
    return result


def _halved(doubled: Polynomial) -> str:
    if all(factor % 2 == 0 for _, factor in doubled.terms):
        return Polynomial(tuple((monomial, factor // 2) for monomial, factor in doubled.terms)).to_c()
    return f"({doubled.to_c()}) / 2"
