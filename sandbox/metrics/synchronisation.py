"""Synchronisation: what barriers and atomics cost, in warp instructions that could have been issued instead.

    waste = 20 * useless barrier arrivals + 2 * needed ones
          + for atomics on global memory:  32 * s - 4   per request
          + for atomics on shared memory:   4 * s - 4   per request,  s = lanes per distinct address
    score = work / (work + waste),  work = warp instructions
    relevance = share / (share + 20%),  share = waste / (work + waste)

A barrier that orders something is the price of sharing and costs a tenth of one that orders nothing (no
conflicting accesses of two threads on its two sides). The prices are rounded guesses, good for ranking: an
atomic costs one warp-wide operation per lane on the same address, and eight times as much in global memory,
where it crosses to the L2 cache; the cheapest form, conflict-free in shared memory, is free. Blocks that meet
on one address are not seen in these counts.

Not applicable to launches without barriers and atomics.
"""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.emulator.trace import LineCounts
from sandbox.metrics.finding import Finding, at, counted, percent
from sandbox.metrics.launches import MeasuredLaunch, by_line

USELESS_BARRIER = 20.0  # warp instructions per arrival of a warp
NEEDED_BARRIER = 2.0
GLOBAL_ATOMIC = 32.0  # warp instructions per request and lane on the same address
SHARED_ATOMIC = 4.0
USUAL_SHARE = 0.20  # of the cost: where relevance is one half


def lanes_per_address(counts: LineCounts) -> float | None:
    return counts.atomic_lanes / counts.atomic_addresses if counts.atomic_addresses else None


def assess(launches: Sequence[MeasuredLaunch]) -> Finding:
    lines = by_line(launches)
    work = sum(line.instructions for line in lines)
    if not work or not any(line.barriers or line.atomics for line in lines):
        return Finding(None, "No barriers and no atomics.")
    barriers = sum(_barrier_cost(launch) for launch in launches)
    atomics = sum(atomic_waste(line) for line in lines)
    waste = barriers + atomics
    share = waste / (work + waste)
    note = _atomics_note(lines) if atomics > barriers else _barriers_note(launches, lines)
    return Finding(1 - share, note, share / (share + USUAL_SHARE))


def _barrier_cost(launch: MeasuredLaunch) -> float:
    arrivals = launch.totals.barriers
    executed = launch.trace.barriers_executed
    useless = launch.trace.useless_barriers / executed if executed else 0.0
    return arrivals * (useless * USELESS_BARRIER + (1 - useless) * NEEDED_BARRIER)


def atomic_waste(line: LineCounts) -> float:
    serial = lanes_per_address(line) or 1.0
    in_global = line.atomics - line.shared_atomics
    return in_global * (GLOBAL_ATOMIC * serial - SHARED_ATOMIC) + line.shared_atomics * SHARED_ATOMIC * (
        serial - 1
    )


def _barriers_note(launches: Sequence[MeasuredLaunch], lines: Sequence[LineCounts]) -> str:
    executed = sum(launch.trace.barriers_executed for launch in launches)
    useless = sum(launch.trace.useless_barriers for launch in launches)
    warps = sum(launch.trace.warps.count for launch in launches)
    arrivals = sum(line.barriers for line in lines)
    busiest = max(lines, key=lambda line: line.barriers)
    start = f"{counted(arrivals / warps, 'barrier')} per thread, most on line {busiest.line}"
    if useless == 0:
        return f"{start}; each orders something."
    worst = max(lines, key=lambda line: line.useless_barriers)
    where = f", most of them on line {worst.line}" if worst.useless_barriers else ""
    advice = " Try removing them." if useless > executed / 4 else ""
    return (
        f"{start}; {percent(useless / executed)} of the {executed:,} executed order nothing{where} "
        f"(no two threads touch the same data on their two sides).{advice}"
    )


def _atomics_note(lines: Sequence[LineCounts]) -> str:
    worst = max(lines, key=atomic_waste)
    serial = lanes_per_address(worst) or 1.0
    requests = f"{at(worst.line)} executes {worst.atomics:,} atomic requests"
    start = f"{requests} with {counted(serial, 'lane')} per address"
    if worst.shared_atomics == worst.atomics:
        return f"{start}, in shared memory. Try combining within the warp first."
    if serial > 4:
        return f"{start}: they queue up. Try reducing within the warp or block, then one atomic per block."
    return f"{start}, in global memory. Try counters per block in shared memory, added up at the end."
