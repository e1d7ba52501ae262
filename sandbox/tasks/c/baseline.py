"""The user's own C as a baseline of time: -O3 -march=native, on one core, and on all where it says OpenMP."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sandbox.cancellation import Cancellation
from sandbox.limits import REFERENCE
from sandbox.tasks.base import Baseline, Draw
from sandbox.tasks.c.build import Executable, build_timed
from sandbox.tasks.c.formals import Formal
from sandbox.tasks.c.parse import Program
from sandbox.tasks.c.runner import Call, call_reference
from sandbox.timing import BLOCKS

_POISON = 0xFF
_SECONDS = 10.0  # for one block: the harness stops timing long before


def baselines(
    program: Program, entry: str, formals: Sequence[Formal], draws: Sequence[Draw], cancel: Cancellation
) -> list[Baseline]:
    """Times it on these inputs in turn, `BLOCKS` blocks. A version that does not end well is left out.

    Raises TaskProblem where it does not even compile, Cancelled.
    """
    cores = os.cpu_count() or 1
    versions = [("c", False)]
    if re.search(r"^\s*#\s*pragma\s+omp\b", program.source, re.MULTILINE):
        versions.append((f"c, OpenMP on {cores} cores", True))
    found = []
    for name, openmp in versions:
        built = build_timed(program, entry, formals, cancel, openmp=openmp)
        blocks = _nanoseconds(built, formals, draws, cores, cancel)
        if blocks is not None:
            found.append(Baseline(name, np.array(blocks, np.float64).reshape(-1, 1) / 1000))
    return found


def _nanoseconds(
    built: Executable, formals: Sequence[Formal], draws: Sequence[Draw], cores: int, cancel: Cancellation
) -> list[int] | None:
    """The median of each block; None where a call fails."""
    calls = [Call(d.scalars, d.arrays, d.extents) for d in (draws[i % len(draws)] for i in range(BLOCKS))]
    limits = replace(
        REFERENCE,
        wall_seconds=BLOCKS * _SECONDS,
        cpu_seconds=int(BLOCKS * _SECONDS) * cores,
        processes=REFERENCE.processes + cores,
    )
    outcomes = call_reference(
        built, formals, calls, at_end=False, poison=_POISON, seconds=_SECONDS, limits=limits, cancel=cancel
    )
    if any(outcome.status != "ok" for outcome in outcomes):
        return None
    return [outcome.detail for outcome in outcomes]
