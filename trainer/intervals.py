"""How sure a counted share is, and whether two of them differ. Pure functions, one formula each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

#: Of a normal distribution, two-sided 95%.
_Z = 1.959963984540054


def wilson(passed: int, of: int) -> tuple[float, float]:
    """The 95% Wilson interval of a share: (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n).

    (0, 1) where nothing was counted.
    """
    if not of:
        return 0.0, 1.0
    share = passed / of
    centre = share + _Z**2 / (2 * of)
    spread = _Z * math.sqrt(share * (1 - share) / of + _Z**2 / (4 * of**2))
    below = 1 + _Z**2 / of
    return max((centre - spread) / below, 0.0), min((centre + spread) / below, 1.0)


def mcnemar(gained: int, lost: int) -> float:
    """The exact two-sided p-value of McNemar's test: how likely so uneven a split of the changed pairs is
    if either way were as likely. 1 where none changed."""
    changed = gained + lost
    tail: float = sum(math.comb(changed, k) for k in range(min(gained, lost) + 1)) / 2.0**changed
    return min(1.0, 2 * tail)


def paired_difference(
    before: Sequence[bool], after: Sequence[bool], *, draws: int = 4000, seed: int = 0
) -> tuple[float, float, float]:
    """(difference of the shares, low, high): the 95% percentile bootstrap over pairs, resampled whole.

    Raises ValueError for sequences of different lengths, and for empty ones.
    """
    changes = [int(b) - int(a) for a, b in zip(before, after, strict=True)]
    if not changes:
        raise ValueError("there are no pairs")
    chance, of = Random(seed), len(changes)
    means = sorted(sum(chance.choices(changes, k=of)) / of for _ in range(draws))
    return sum(changes) / of, means[int(0.025 * draws)], means[min(int(0.975 * draws), draws - 1)]
