"""The content of every parameter for one draw, at given sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sandbox.tasks import draws
from sandbox.tasks.base import Array, Distribution, Inputs
from sandbox.tasks.c.formals import Formal
from sandbox.tasks.c.infer import Inferred
from sandbox.tasks.c.runner import Call

#: Integer scalars that are no sizes.
_SMALL_INTEGERS = (1, 4)
#: Floating-point scalars: away from zero, so that dividing by them is fine.
_SCALARS = (0.25, 2.0)


def usual_integer(formal: Formal) -> int:
    """An integer scalar that is no size, where sizes are chosen."""
    return 1 if formal.dtype == "bool" else 2


def fill(
    formals: Sequence[Formal],
    inferred: Inferred,
    inputs: Inputs,
    sizes: Mapping[str, int],
    distribution: Distribution,
    rng: np.random.Generator,
) -> Call:
    """Content for every array that is read or read and written; scalars drawn, unless the user gave them."""
    scalars: dict[str, int | float] = {}
    # In ascending order: a lower bound comes before its upper one in most prototypes.
    numbers = iter(np.sort(rng.uniform(*_SCALARS, sum(not f.is_array for f in formals))))
    for formal in formals:
        if not formal.is_array:
            scalars[formal.name] = _scalar(formal, inputs, sizes, float(next(numbers)), rng)
    integers = {name: int(value) for name, value in scalars.items() if isinstance(value, int)}
    extents = inferred.extents(integers)
    arrays: dict[str, Array] = {}
    for formal in formals:
        if formal.is_array and not formal.is_result:
            arrays[formal.name] = _array(formal, inferred, inputs, extents, integers, distribution, rng)
    return Call(scalars, arrays, extents)


def _scalar(
    formal: Formal, inputs: Inputs, sizes: Mapping[str, int], number: float, rng: np.random.Generator
) -> int | float:
    if formal.name in sizes:
        return int(sizes[formal.name])
    given = inputs.scalars.get(formal.name)
    if given is not None:
        return int(given) if formal.is_integer_scalar else float(np.dtype(formal.dtype).type(given))
    if formal.dtype == "bool":
        return int(rng.integers(0, 2))
    if formal.is_integer_scalar:
        return int(rng.integers(*_SMALL_INTEGERS, endpoint=True))
    return float(np.dtype(formal.dtype).type(number))


def _array(
    formal: Formal,
    inferred: Inferred,
    inputs: Inputs,
    extents: Mapping[str, int],
    integers: Mapping[str, int],
    distribution: Distribution,
    rng: np.random.Generator,
) -> Array:
    count = extents[formal.name]
    given = inputs.arrays.get(formal.name)
    low, high = (given.low, given.high) if given is not None else (None, None)
    if given is not None and given.distribution not in (None, "given"):
        distribution = given.distribution or distribution
    if formal.dtype.startswith("float"):
        if inferred.unit_range and low is None and high is None:
            low, high = 0.0, 1.0
        return draws.floats(rng, distribution, count, formal.dtype, low, high)
    if formal.name in inferred.row_starts:
        total = inferred.row_total(extents)
        return draws.row_starts(
            rng, count - 1, total if high is None else min(total, int(high)), formal.dtype
        )
    if inferred.nonnegative and low is None:
        low = 0
    limit = _index_limit(formal.name, inferred, extents, integers)
    if limit is not None:
        # Where the program checks before it indexes, some values have to be caught by that check.
        guarded = all(use.guarded for use in inferred.index_uses if use.source == formal.name)
        beyond = max(1, limit // 8) if guarded else 0
        low = low if low is not None else -beyond
        most = max(limit, 0) + beyond
        high = most if high is None else min(high, most)
        if inferred.is_scatter(formal.name) and low >= 0 and count <= high - low + 1:
            chosen = rng.permutation(int(high - low) + 1)[:count] + int(low)
            return chosen.astype(formal.dtype)
    if limit is None and inferred.most is not None and low is None and high is None:
        low, high = 0, inferred.most
    return draws.integers(rng, count, formal.dtype, low, high)


def _index_limit(
    name: str, inferred: Inferred, extents: Mapping[str, int], integers: Mapping[str, int]
) -> int | None:
    """The largest value that keeps every use of this array's values as indices inside; None when it has
    no such use."""
    limits = []
    for use in inferred.index_uses:
        if use.source != name or use.array not in extents:
            continue
        factor, rest = use.factor.evaluate(integers), use.rest.evaluate(integers)
        if factor > 0:
            limits.append((extents[use.array] - 1 - max(rest, 0)) // factor)
    return min(limits, default=None)
