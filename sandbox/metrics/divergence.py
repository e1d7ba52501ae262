"""Divergence: how many of a warp's 32 lanes do something in the instructions it executes.

score = soft(active lanes / (32 * warp instructions)), all launches added up, so a line counts by its
instructions. Lanes are lost to branches that part them, to threads that have left, and to block sizes that
are no multiple of 32.
"""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.emulator.trace import LineCounts
from sandbox.metrics.finding import Finding, at, number, percent, soft
from sandbox.metrics.launches import MeasuredLaunch, by_line

WARP = 32


def active_threads(counts: LineCounts) -> float:
    """Per warp instruction; 0 where there was none."""
    return counts.active_lanes / counts.instructions if counts.instructions else 0.0


def assess(launches: Sequence[MeasuredLaunch]) -> Finding:
    instructions = sum(launch.totals.instructions for launch in launches)
    if not instructions:
        return Finding(None, "No kernel executed an instruction.")
    lanes = sum(launch.totals.active_lanes for launch in launches)
    return Finding(soft(lanes / (WARP * instructions)), _note(launches, lanes / instructions))


def _note(launches: Sequence[MeasuredLaunch], active: float) -> str:
    start = f"{number(active)} of 32 threads are active per warp instruction"
    if active > 0.995 * WARP:
        return start + "."
    lines = by_line(launches)
    branch = max(lines, key=lambda line: line.divergent_branches)
    idlest = max(lines, key=lambda line: WARP * line.instructions - line.active_lanes)
    if branch.divergent_branches:
        share = branch.divergent_branches / branch.branches
        where = "there" if idlest.line == branch.line else f"on line {idlest.line}"
        return (
            f"{start}: the branch on line {branch.line} parts its warp in {percent(share)} of its "
            f"{branch.branches:,} executions. Most lanes are lost {where} "
            f"({number(active_threads(idlest))} active)."
        )
    if any(launch.threads_per_block % WARP for launch in launches):
        threads = next(launch.threads_per_block for launch in launches if launch.threads_per_block % WARP)
        return f"{start}: blocks of {threads} threads leave lanes of a warp empty. Try a multiple of 32."
    return f"{start}; {at(idlest.line).lower()} loses most ({number(active_threads(idlest))} active)."
