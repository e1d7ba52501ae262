"""Timings and what may be concluded from them: pure functions, no device.

Samples are arrays of shape (blocks, trials), in microseconds. Two sides that are compared were measured in
the same blocks, interleaved as `schedule` says, so that what drifts (clocks, heat) drifts for both.
`sandbox.gpu` takes the samples.
"""

from sandbox.timing.compare import Comparison, Samples, compare, interval, variation
from sandbox.timing.plausible import implausible
from sandbox.timing.schedule import BLOCKS, TRIALS, schedule

__all__ = [
    "BLOCKS",
    "TRIALS",
    "Comparison",
    "Samples",
    "compare",
    "implausible",
    "interval",
    "schedule",
    "variation",
]
