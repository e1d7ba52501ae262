"""Memory coalescing: how many 32-byte sectors global accesses move, against what their bytes need.

The ideal of a request is ceil(useful bytes / 32) sectors, useful bytes being the distinct bytes that its
lanes asked for, so a broadcast is not blamed. Ideal and moved sectors of loads and stores are added up over
all launches: score = soft(ideal / moved). A line thus counts by the sectors it moves. Reading the same data
again is `intensity`'s concern.

Not applicable when no kernel loads from or stores to global memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.emulator.trace import LineCounts
from sandbox.metrics.finding import Finding, at, counted, number, percent, soft
from sandbox.metrics.launches import MeasuredLaunch, by_line

SECTOR_BYTES = 32


def efficiency(useful_bytes: int, sectors: int) -> float | None:
    """Useful over moved bytes, as a profiler reports it (a broadcast of 4 bytes is 0.125); None: nothing
    moved.
    """
    return useful_bytes / (sectors * SECTOR_BYTES) if sectors else None


def assess(launches: Sequence[MeasuredLaunch]) -> Finding:
    lines = by_line(launches)
    moved = sum(line.global_load_sectors + line.global_store_sectors for line in lines)
    if not moved:
        return Finding(None, "No global memory is loaded or stored.")
    ideal = sum(_ideal(line) for line in lines)
    return Finding(soft(ideal / moved), _note(lines, ideal, moved))


def _ideal(line: LineCounts) -> int:
    return line.global_load_ideal + line.global_store_ideal


def _note(lines: Sequence[LineCounts], ideal: int, moved: int) -> str:
    worst = max(lines, key=lambda line: line.global_load_sectors + line.global_store_sectors - _ideal(line))
    wasted = worst.global_load_sectors + worst.global_store_sectors - _ideal(worst)
    if wasted == 0:
        line = max(lines, key=lambda line: line.global_load_sectors + line.global_store_sectors)
        requests = line.global_load_requests + line.global_store_requests
        sectors = line.global_load_sectors + line.global_store_sectors
        return f"{at(line.line)} moves {counted(sectors / requests, 'sector')} per request, all needed."
    loads_waste = worst.global_load_sectors - worst.global_load_ideal
    if 2 * loads_waste >= wasted:
        verb, requests, sectors = "loads", worst.global_load_requests, worst.global_load_sectors
        needed = worst.global_load_ideal
    else:
        verb, requests, sectors = "stores", worst.global_store_requests, worst.global_store_sectors
        needed = worst.global_store_ideal
    return (
        f"{at(worst.line)} {verb} {counted(sectors / requests, 'sector')} per request "
        f"({number(needed / requests)} would do): {_cause(sectors, needed, requests)} "
        f"In all, {percent(ideal / moved)} of the sectors moved are needed."
    )


def _cause(sectors: int, needed: int, requests: int) -> str:
    """What such a ratio usually means; the trace knows sectors, not the index expression."""
    ratio = sectors / needed
    # Neighbours that begin off a sector's edge touch one sector more, never two: the waste may be that.
    if sectors - needed <= requests and ratio <= 2:
        return "requests straddle sector boundaries or span several short rows."
    if ratio >= 6:
        return (
            "consecutive threads are a row apart. Try swapping the loops, or staging a tile in shared memory."
        )
    if ratio >= 1.6:
        return f"consecutive threads are about {ratio:.0f} elements apart. Try one array per field."
    return "requests straddle sector boundaries or span several short rows."
