"""Values for inputs: named distributions, the same for every kind of task, deterministic in the seed."""

from __future__ import annotations

import hashlib

import numpy as np

from sandbox.tasks.base import Array, Distribution

#: What "large_offset" adds: sums of squares, exponentials and differences of means all feel it.
OFFSET = 1000.0
#: Integers that are neither indices nor sizes.
INTEGER_RANGE = (-100, 100)

_SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1.0)


def generator(seed: bytes, *labels: str | int) -> np.random.Generator:
    """A generator of its own for each label: adding a draw never changes another."""
    digest = hashlib.sha256(seed + "/".join(map(str, labels)).encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))


def floats(
    rng: np.random.Generator,
    distribution: Distribution,
    count: int,
    dtype: str,
    low: float | None = None,
    high: float | None = None,
) -> Array:
    """`count` values. A range given by the user is kept by every distribution: values are drawn evenly
    from it."""
    if low is not None or high is not None:
        bottom = low if low is not None else min(0.0, (high or 0.0) - 1.0)
        top = high if high is not None else max(1.0, bottom + 1.0)
        return rng.uniform(bottom, top, count).astype(dtype)
    with np.errstate(over="ignore"):
        return _floats(rng, distribution, count).astype(dtype)


def _floats(rng: np.random.Generator, distribution: Distribution, count: int) -> Array:
    match distribution:
        case "uniform":
            return rng.uniform(-1.0, 1.0, count)
        case "heavy_tail":
            return np.clip(rng.standard_t(2.0, count), -1e4, 1e4)
        case "large_offset":
            return rng.standard_normal(count) + OFFSET
        case "cancellation":
            return _cancelling(rng, count)
        case "special":
            values = rng.standard_normal(count)
            chosen = rng.random(count) < 0.1
            return np.where(chosen, rng.choice(np.array(_SPECIAL), count), values)
        case _:
            return rng.standard_normal(count)


def _cancelling(rng: np.random.Generator, count: int) -> Array:
    """Neighbours that almost cancel: large values, each followed by nearly its negative."""
    values = 100.0 * rng.standard_normal(count)
    pairs = count // 2
    values[1 : 2 * pairs : 2] = -values[0 : 2 * pairs : 2] * (1.0 + 1e-3 * rng.standard_normal(pairs))
    return values


def integers(
    rng: np.random.Generator,
    count: int,
    dtype: str,
    low: float | None = None,
    high: float | None = None,
) -> Array:
    """`count` integers in [low, high], both inclusive; for bytes and flags the whole type where nothing
    is said."""
    kind = np.dtype(dtype)
    if kind == np.dtype("bool"):
        return rng.integers(0, 2, count).astype(bool)
    limits = np.iinfo(kind)
    bottom, top = INTEGER_RANGE if kind.itemsize > 1 else (limits.min, limits.max)
    bottom = max(int(low) if low is not None else bottom, int(limits.min))
    top = min(int(high) if high is not None else top, int(limits.max))
    if high is None and low is not None:
        top = max(top, bottom)
    return rng.integers(bottom, max(top, bottom), count, endpoint=True).astype(dtype)


def row_starts(rng: np.random.Generator, rows: int, total: int, dtype: str) -> Array:
    """`rows + 1` ascending integers from 0 to `total`: where each row of a ragged list begins. Rows may
    be empty."""
    if rows < 1:
        return np.zeros(rows + 1, dtype=dtype)
    inner = np.sort(rng.integers(0, total, rows - 1, endpoint=True))
    return np.concatenate([[0], inner, [total]]).astype(dtype)
