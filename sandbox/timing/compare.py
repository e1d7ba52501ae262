"""Is one kernel faster than another, and by how much? From samples of shape (blocks, trials)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from sandbox.types import Interval

Samples = npt.NDArray[np.float64]

#: Both ends of every interval are one-sided 99% bounds.
CONFIDENCE = 0.99
_RESAMPLES = 20_000
_SEED = 20  # the bounds of the same samples are the same numbers


@dataclass(frozen=True)
class Comparison:
    """Baseline time over candidate time: above 1, the candidate is faster."""

    speedup: float  # median of the blocks' ratios
    low: float  # one-sided 99% bootstrap bounds of the mean ratio
    high: float
    p: float  # Mann-Whitney, one-sided: that block medians like these come from equally fast kernels

    def faster_by(self, share: float) -> bool:
        """Whether it may be said that the candidate is faster by more than `share` (0.05: 5%)."""
        return self.low > 1 + share and self.p < 1 - CONFIDENCE


def compare(baseline: Samples, candidate: Samples) -> Comparison:
    """Both were measured in the same blocks. Raises ValueError where they do not fit, or are no times."""
    if baseline.shape[0] != candidate.shape[0] or not baseline.shape[0]:
        raise ValueError(f"{baseline.shape[0]} and {candidate.shape[0]} blocks cannot be compared")
    before, after = _medians(baseline), _medians(candidate)
    ratios = before / after
    # Means of logarithms: a ratio and its reciprocal weigh the same. A bound of the mean moves with every
    # block; one of the median would jump between seven numbers.
    low, high = np.exp(_bounds(np.log(ratios), _mean))
    return Comparison(
        speedup=float(np.median(ratios)),
        low=float(low),
        high=float(high),
        p=mann_whitney(after, before),
    )


def interval(samples: Samples) -> Interval:
    """The median time, with bounds that come from resampling whole blocks."""
    medians = _medians(samples)
    low, high = _bounds(medians, _median)
    return Interval(median=float(np.median(medians)), low=float(low), high=float(high))


def variation(samples: Samples) -> float:
    """Coefficient of variation over all trials: standard deviation over mean."""
    return float(np.std(samples) / np.mean(samples))


def mann_whitney(smaller: Samples, larger: Samples) -> float:
    """Probability that, by chance, `smaller` would be below `larger` at least as clearly as it is.

    Exact, by counting the ways to split the pooled ranks; ties have their mean rank. Meant for block medians:
    a handful on each side. Equivalent to scipy.stats.mannwhitneyu(..., alternative="less", method="exact")
    where there are no ties.
    """
    pooled = np.concatenate([smaller, larger])
    doubled = _doubled_ranks(pooled)
    count, observed = len(smaller), int(doubled[: len(smaller)].sum())
    # ways[k][s]: how many choices of k of the ranks seen so far have the (doubled) sum s.
    ways: list[dict[int, int]] = [{0: 1}, *({} for _ in range(count))]
    for rank in map(int, doubled):
        for chosen in range(count, 0, -1):
            for total, number in ways[chosen - 1].items():
                ways[chosen][total + rank] = ways[chosen].get(total + rank, 0) + number
    as_small = sum(number for total, number in ways[count].items() if total <= observed)
    return as_small / math.comb(len(pooled), count)


def _doubled_ranks(values: Samples) -> npt.NDArray[np.int64]:
    """Twice the mean rank, so that ties stay whole numbers."""
    below = (values[:, None] > values[None, :]).sum(axis=1)
    equal = (values[:, None] == values[None, :]).sum(axis=1)
    return np.asarray(2 * below + equal + 1, dtype=np.int64)


def _medians(samples: Samples) -> Samples:
    if not np.all(np.isfinite(samples)) or not np.all(samples > 0):
        raise ValueError("a timing is not a positive number")
    return _median(samples)


def _mean(rows: Samples) -> Samples:
    return np.asarray(np.mean(rows, axis=1))


def _median(rows: Samples) -> Samples:
    return np.asarray(np.median(rows, axis=1))


def _bounds(blocks: Samples, statistic: Callable[[Samples], Samples]) -> tuple[float, float]:
    """`statistic` of each row. Expanded percentiles (T. Hesterberg, What Teachers Should Know About the
    Bootstrap, 2015): with seven blocks, plain ones would hold 97% where 99% are promised."""
    values = np.sort(statistic(blocks[_resamples(len(blocks))]))
    beyond = round(_expanded(1 - CONFIDENCE, len(blocks)) * _RESAMPLES)
    return float(values[beyond]), float(values[-1 - beyond])


@functools.cache
def _resamples(count: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(_SEED).integers(0, count, (_RESAMPLES, count))


def _expanded(tail: float, count: int) -> float:
    """The normal tail beyond Student's quantile for `count` values, widened for the resamples' own bias."""
    if count < 2:
        return 0.0
    z, nu = -NormalDist().inv_cdf(tail), count - 1
    student = z + (z**3 + z) / (4 * nu) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * nu**2)
    return NormalDist().cdf(-math.sqrt(count / nu) * student)
