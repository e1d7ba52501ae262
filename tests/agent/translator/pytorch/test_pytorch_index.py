"""Index arithmetic against plain integers."""

from __future__ import annotations

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from agent.translator.pytorch.index import (
    Ix,
    Quotient,
    Remainder,
    Var,
    constant,
    flatten,
    render,
    unflatten,
    variable,
)


def value(ix: Ix, at: dict[str, int]) -> int:
    total = ix.constant
    for atom, c in ix.terms:
        match atom:
            case Var(name=name):
                total += c * at[name]
            case Quotient(of=of, by=by):
                total += c * (value(of, at) // by)
            case Remainder(of=of, by=by):
                total += c * (value(of, at) % by)
    return total


EXTENTS = {"a": 6, "b": 4, "c": 5}
POINTS = [
    dict(zip(EXTENTS, p, strict=True)) for p in itertools.product(*(range(n) for n in EXTENTS.values()))
]
leaves = st.sampled_from([variable(n, e) for n, e in EXTENTS.items()]) | st.integers(0, 9).map(constant)


@st.composite
def built(draw: st.DrawFn) -> tuple[Ix, list[int]]:
    """An expression made by the operators, and its values from plain integers at every point."""
    ix = draw(leaves)
    values = [value(ix, p) for p in POINTS]
    for _ in range(draw(st.integers(1, 6))):
        operation, n = draw(st.sampled_from(["+", "*", "/", "%"])), draw(st.integers(1, 12))
        if operation == "+":
            other = draw(leaves)
            ix, values = ix + other, [v + value(other, p) for v, p in zip(values, POINTS, strict=True)]
        elif operation == "*":
            ix, values = ix * n, [v * n for v in values]
        elif operation == "/":
            ix, values = ix // n, [v // n for v in values]
        else:
            ix, values = ix % n, [v % n for v in values]
    return ix, values


@given(built())
def test_operators_keep_the_value(pair: tuple[Ix, list[int]]) -> None:
    ix, values = pair
    assert [value(ix, p) for p in POINTS] == values
    low, high = ix.bounds
    assert low <= min(values)
    assert high >= max(values)


@given(built())
def test_rendered_c_has_the_value(pair: tuple[Ix, list[int]]) -> None:
    ix, values = pair
    text = render(ix).replace("/", "//")  # non-negative: C divides as Python does
    assert [eval(text, {}, dict(p)) for p in POINTS] == values


@given(st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_taking_a_row_apart_and_together_gives_the_row(shape: list[int]) -> None:
    row = variable("row", math.prod(shape))
    assert flatten(unflatten(row, shape), shape) == row


def test_reshape_there_and_back_is_nothing() -> None:
    row = variable("row", 24)
    middle = flatten(unflatten(row, [4, 6]), [4, 6])
    assert unflatten(middle, [2, 12]) == unflatten(row, [2, 12])


def test_neighbours_in_fours() -> None:
    at = variable("i", 8) * 4 + variable("j", 4)
    assert str(at // 4) == "i"
    assert str(at % 4) == "j"
    assert at.coefficient("j") == 1
    assert (at - variable("j", 4)).multiple_of(4)
    assert (at // 3).coefficient("j") is None
