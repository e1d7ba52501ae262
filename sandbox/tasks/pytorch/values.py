"""Values for the tensors of one draw, by distribution and by the domain the module was seen to accept.

numpy only: the judge uses it for the real draws, the jailed worker to try out which domain the module
accepts.
"""

from __future__ import annotations

import numpy as np

from sandbox.tasks.base import Array, Distribution
from sandbox.tasks.pytorch.graph import DTYPES
from sandbox.tasks.pytorch.messages import Values

_HEAVIEST = 50.0  # heavy tails are cut here: beyond it float32 overflows in ordinary modules
_POSITIVE = 1e-3  # smallest value where negative ones are not accepted


def draw(values: Values, distribution: Distribution, offset: float, generator: np.random.Generator) -> Array:
    """An array of `values.type`. Parameters have domain "observed" and keep the scale of their
    initialisation.
    """
    shape, dtype = values.type.shape, np.dtype(DTYPES[values.type.dtype])
    if values.domain == "integer":
        return generator.integers(int(values.low), int(values.high) + 1, shape).astype(dtype)
    if values.domain == "observed":
        return _within(values, distribution, generator).astype(dtype)
    drawn = _real(shape, distribution, offset, generator)
    if values.domain == "nonnegative":
        drawn = np.abs(drawn) + _POSITIVE
    return drawn.astype(dtype)


def parameter(values: Values, generator: np.random.Generator) -> Array:
    """Own values for a weight: uniform with the mean and deviation of its initialisation, inside its range.

    A constant initialisation (zeros of a bias, ones of a scale) is spread by a half, so that nothing cancels.
    """
    half = values.deviation * 3**0.5
    low, high = max(values.low, values.mean - half), min(values.high, values.mean + half)
    if values.deviation == 0:
        spread = abs(values.mean) / 2 or 0.5
        low, high = values.mean - spread, values.mean + spread
    drawn = generator.uniform(low, high, values.type.shape)
    return drawn.astype(DTYPES[values.type.dtype])


def _real(
    shape: list[int], distribution: Distribution, offset: float, generator: np.random.Generator
) -> Array:
    match distribution:
        case "uniform":
            return generator.uniform(-1, 1, shape)
        case "heavy_tail":
            return np.clip(generator.standard_t(3, shape), -_HEAVIEST, _HEAVIEST)
        case "large_offset":
            return offset + generator.standard_normal(shape)
        case "cancellation":
            return _cancelling(shape, generator)
        case _:
            return generator.standard_normal(shape)


def _cancelling(shape: list[int], generator: np.random.Generator) -> Array:
    """Neighbours that nearly cancel when they are added."""
    flat = generator.standard_normal(int(np.prod(shape, dtype=np.int64)))
    flat[1::2] = -flat[0 : 2 * (flat.size // 2) : 2] * (1 + 1e-3 * generator.standard_normal(flat.size // 2))
    return flat.reshape(shape)


def _within(values: Values, distribution: Distribution, generator: np.random.Generator) -> Array:
    """Inside the range that get_inputs gave."""
    shape = values.type.shape
    match distribution:
        case "normal":
            unit = np.clip(0.5 + 0.15 * generator.standard_normal(shape), 0, 1)
        case "heavy_tail":
            unit = generator.uniform(0, 1, shape) ** 4
        case "large_offset":
            unit = generator.uniform(0.9, 1, shape)
        case "cancellation":
            unit = np.clip(0.5 + _cancelling(shape, generator) / 8, 0, 1)
        case _:
            unit = generator.uniform(0, 1, shape)
    return np.asarray(values.low + (values.high - values.low) * unit)
