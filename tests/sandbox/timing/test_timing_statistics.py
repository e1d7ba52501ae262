"""Conclusions from timings, on samples whose truth is known."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from sandbox.targets import TARGETS
from sandbox.timing import BLOCKS, TRIALS, compare, implausible, interval, schedule, variation
from sandbox.timing.compare import Samples, mann_whitney

RUNS = 300


def timings(rng: np.random.Generator, kind: str, speed: float = 1.0) -> tuple[Samples, Samples]:
    """Two sides as a GPU gives them: 100 us with noise. The second is `speed` times as fast."""
    clock = np.ones((BLOCKS, 1))
    if kind == "drift":  # heats up, and slows by 10%
        clock = np.linspace(1.0, 1.1, BLOCKS)[:, None]
    if kind == "throttled":  # blocks in which everything is slower
        clock = rng.choice([1.0, 1.3], (BLOCKS, 1))
    sides = []
    for base in (100.0, 100.0 / speed):
        noise = rng.normal(1.0, 0.02, (BLOCKS, TRIALS))
        if kind == "spikes":
            noise += rng.pareto(2.0, (BLOCKS, TRIALS)) * 0.05
        if kind == "noisy blocks":
            noise *= rng.normal(1.0, 0.03, (BLOCKS, 1))
        sides.append(base * clock * noise)
    return sides[0], sides[1]


KINDS = ["quiet", "drift", "throttled", "spikes", "noisy blocks"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kernel_is_not_faster_than_itself(kind: str) -> None:
    rng = np.random.default_rng(1)
    results = [compare(*timings(rng, kind)) for _ in range(RUNS)]
    assert sum(result.faster_by(0.05) for result in results) <= 0.01 * RUNS
    assert sum(result.faster_by(0.0) for result in results) <= 0.02 * RUNS  # one in a hundred is expected


@pytest.mark.parametrize("kind", KINDS)
def test_5_percent_is_not_more_than_5_percent(kind: str) -> None:
    rng = np.random.default_rng(2)
    false = sum(compare(*timings(rng, kind, speed=1.05)).faster_by(0.05) for _ in range(RUNS))
    assert false <= 0.03 * RUNS  # on the very edge, where one in a hundred is meant


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "throttled"])
def test_a_faster_kernel_is_found(kind: str) -> None:
    """Not where whole blocks are throttled: block medians differ by more than the kernels do, and nothing is
    claimed."""
    rng = np.random.default_rng(3)
    found = sum(compare(*timings(rng, kind, speed=1.15)).faster_by(0.05) for _ in range(100))
    assert found >= 90


@pytest.mark.parametrize("kind", KINDS)
def test_the_true_speedup_lies_in_the_interval(kind: str) -> None:
    rng = np.random.default_rng(4)
    results = [compare(*timings(rng, kind, speed=1.5)) for _ in range(RUNS)]
    assert sum(r.low <= 1.5 <= r.high for r in results) >= 0.93 * RUNS
    assert all(r.low <= r.high for r in results)


def test_the_same_samples_give_the_same_bounds() -> None:
    before, after = timings(np.random.default_rng(5), "spikes", speed=2.0)
    assert compare(before, after) == compare(before.copy(), after.copy())
    swapped = compare(after, before)
    assert swapped.speedup == pytest.approx(1 / compare(before, after).speedup)
    assert swapped.p > 0.99


def test_mann_whitney_against_known_values() -> None:
    """By hand: 3 against 3 can be split in 20 ways."""
    assert mann_whitney(np.array([1.0, 2, 3]), np.array([4.0, 5, 6])) == pytest.approx(1 / 20)
    assert mann_whitney(np.array([4.0, 5, 6]), np.array([1.0, 2, 3])) == 1.0
    assert mann_whitney(np.array([1.0, 2, 4]), np.array([3.0, 5, 6])) == pytest.approx(2 / 20)
    assert mann_whitney(np.array([1.0, 1]), np.array([1.0, 1])) == 1.0
    # scipy.stats.mannwhitneyu([1, 3, 5, 7, 9, 11, 13], [2, 4, 6, 8, 10, 12, 14], "less", method="exact")
    assert mann_whitney(np.arange(1.0, 14, 2), np.arange(2.0, 15, 2)) == pytest.approx(0.3552, abs=2e-4)
    assert mann_whitney(np.zeros(7), np.ones(7)) == pytest.approx(1 / 3432)


def test_intervals_and_variation() -> None:
    samples, _ = timings(np.random.default_rng(6), "spikes")
    found = interval(samples)
    assert found.low <= found.median <= found.high
    assert 95 < found.median < 110
    assert variation(np.full((7, 20), 3.0)) == 0.0
    assert 0.02 < variation(samples) < 0.5


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_what_is_no_time_is_refused(bad: float) -> None:
    good, broken = np.ones((7, 20)), np.ones((7, 20))
    broken[3, 4] = bad
    with pytest.raises(ValueError, match="not a positive number"):
        compare(good, broken)


def test_sides_must_have_the_same_blocks() -> None:
    with pytest.raises(ValueError, match="7 and 6 blocks"):
        compare(np.ones((7, 20)), np.ones((6, 20)))


def test_the_schedule_is_balanced_and_reversed() -> None:
    order = list(schedule(2, blocks=3, trials=4))
    assert Counter(order) == {(block, side): 4 for block in range(3) for side in range(2)}
    assert [side for block, side in order if block == 1] == [0, 0, 1, 1, 1, 1, 0, 0]
    with pytest.raises(ValueError, match="halved"):
        next(schedule(2, trials=3))


def test_faster_than_memory_is_not_believed() -> None:
    target = TARGETS["sm_90"]  # 4.8 TB/s
    assert "faster than the memory" in implausible(9.9, bytes_read=48_000_000, target=target)
    assert implausible(10.1, bytes_read=48_000_000, target=target) == ""
    assert "believed" in implausible(10.1, bytes_read=0, target=target, speedup=10.5)
    assert implausible(10.1, bytes_read=0, target=target, speedup=9.5) == ""
