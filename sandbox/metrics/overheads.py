"""Overheads: launches, copies, and registers that went to memory.

    launches = 1 / (1 + 0.15 * log2(L + C / 2)),  L launches and C copies in the plan (1 -> 1, 2 -> 0.87,
    100 -> 0.50) spills   = 1 / (1 + B / 64),  B bytes spilt (stores and loads, static, of ptxas), averaged
    by instructions local    = soft(global / (global + local)), bytes moved by global and local accesses
    score    = launches * spills * local

A launch costs a GPU about as much as streaming ten megabytes, so a plan of many small launches is slow
whatever its kernels do. Steps in time need launches, though, hence the logarithm. ptxas spills after the
PTX that the emulator runs, so spills are static numbers; local arrays that the PTX itself has are measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sandbox.metrics.coalescing import SECTOR_BYTES
from sandbox.metrics.finding import Finding, at, number, soft
from sandbox.metrics.launches import MeasuredLaunch, by_line

PER_DOUBLING = 0.15
HALF_AT_SPILLED_BYTES = 64


def assess(launches: Sequence[MeasuredLaunch], copies: int = 0) -> Finding:
    count = sum(launch.repeats for launch in launches)
    if not count:
        return Finding(None, "Nothing was launched.")
    score = _launches_factor(count, copies) * _spills_factor(launches) * _local_factor(launches)
    return Finding(score, _note(launches, count, copies))


def _launches_factor(launches: int, copies: int) -> float:
    return 1 / (1 + PER_DOUBLING * math.log2(launches + copies / 2))


def spilled_bytes(launch: MeasuredLaunch) -> int:
    return launch.kernel.spill_store_bytes + launch.kernel.spill_load_bytes if launch.kernel else 0


def _spills_factor(launches: Sequence[MeasuredLaunch]) -> float:
    total = sum(launch.totals.instructions for launch in launches)
    if not total:
        return 1.0
    weighted = sum(
        launch.totals.instructions / (1 + spilled_bytes(launch) / HALF_AT_SPILLED_BYTES)
        for launch in launches
    )
    return weighted / total


def _local_factor(launches: Sequence[MeasuredLaunch]) -> float:
    local = sum(launch.totals.local_bytes for launch in launches)
    if not local:
        return 1.0
    sectors = sum(
        launch.totals.global_load_sectors + launch.totals.global_store_sectors for launch in launches
    )
    return soft(sectors * SECTOR_BYTES / (sectors * SECTOR_BYTES + local))


def _note(launches: Sequence[MeasuredLaunch], count: int, copies: int) -> str:
    costs = {
        "launches": 1 - _launches_factor(count, copies),
        "spills": 1 - _spills_factor(launches),
        "local": 1 - _local_factor(launches),
    }
    plan = f"{count:,} {'launch' if count == 1 else 'launches'}"
    if idle := sorted({launch.name for launch in launches if launch.idle}):
        plan += f", of which those of {', '.join(idle)} change no output"
    if copies:
        plan += f" and {copies:,} {'copy' if copies == 1 else 'copies'}"
    worst = max(costs, key=lambda name: costs[name])
    if costs[worst] == 0:
        return f"{plan}, no spills, no local memory."
    if worst == "spills":
        launch = max(launches, key=spilled_bytes)
        return (
            f"ptxas spills {number(spilled_bytes(launch))} bytes of {launch.name} to local memory at "
            f"{launch.registers} registers per thread. Try holding fewer values at once."
        )
    if worst == "local":
        line = max(by_line(launches), key=lambda line: line.local_bytes)
        return (
            f"{at(line.line)} moves {number(line.local_bytes)} bytes of local memory. "
            "Index local arrays with constants so that they stay in registers."
        )
    return f"{plan}: each costs microseconds that no kernel gives back. Try fusing kernels."
