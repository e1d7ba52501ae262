"""Arithmetic intensity: where the work stands on the roofline, and what keeps it from its roof.

An estimate from exact counts. For each launch, seconds that the whole GPU would need for each resource alone:

    dram    distinct sectors * 32 bytes / DRAM bandwidth             (compulsory traffic)
    flop    FLOP of each precision / its peak, added up
    reread  (2 * (requested - ideal) + (ideal - distinct)) sectors * 32 bytes / (64 bytes per SM and clock)
    pipe    shared and global wavefronts / (1 per SM and clock)
    issue   (warp instructions / (4 per SM and clock) - flop) * f / (f + 2%), where positive
            f = FLOP per active lane and instruction: instructions around the floating-point work are overhead
            where there is such work, and are the work itself where there is none

    ideal  = sqrt((a * dram)^2 + flop^2)      actual = sqrt(dram^2 + flop^2 + reread^2 + pipe^2 + issue^2)
    score  = soft(sum of ideal, without idle launches / sum of actual over launches)

`a` is 1, or the bytes of the task's own inputs and outputs over all DRAM bytes of the plan where those are
known and fewer: intermediate arrays that pass through memory are then waste. Distinct sectors alone would
not show what tiling wins, since a matrix product touches the same bytes with and without tiles; `reread`
falls with every reuse from shared memory, `pipe` with every reuse from registers, `issue` with wider loads
and unrolled loops. The ratio of requested to distinct sectors is the *re-read factor*.

Data asked for again is charged at the width of the port between an SM and the L2 cache: less than what
misses in L1 cost, more than what hits, since caches are not emulated. Sectors that a request moves beyond
its ideal (see `coalescing`) are charged twice, because scattered accesses make caches thrash. The roof that
binds is the larger of dram and flop; their crossing is the ridge, peak FLOP rate over DRAM bandwidth. FLOP
that a better program would not execute count as needed: the score compares programs that do the same
arithmetic.

Not applicable when there are no global accesses and no FLOP.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sandbox.emulator.trace import LineCounts
from sandbox.metrics.coalescing import SECTOR_BYTES
from sandbox.metrics.finding import Finding, at, number, soft
from sandbox.metrics.launches import MeasuredLaunch, by_line
from sandbox.metrics.shared_memory import global_wavefronts, shared_wavefronts
from sandbox.targets import Target
from sandbox.tasks.base import Parameter

PORT_BYTES_PER_CLOCK = 64  # per SM
ISSUE_PER_CLOCK = 4  # warp instructions per SM
USUAL_FLOP_SHARE = 0.02


@dataclass(frozen=True)
class Bounds:
    """Seconds per resource, each as if it were alone."""

    dram: float
    flop: float
    reread: float
    pipe: float
    issue: float

    def ideal(self, needed_share: float) -> float:
        return math.hypot(needed_share * self.dram, self.flop)

    @property
    def actual(self) -> float:
        return math.hypot(self.dram, self.flop, self.reread, self.pipe, self.issue)


def dram_bytes(launch: MeasuredLaunch) -> int:
    """Compulsory traffic: distinct sectors loaded and distinct sectors stored, 32 bytes each."""
    return (launch.trace.distinct_load_sectors + launch.trace.distinct_store_sectors) * SECTOR_BYTES


def flop(counts: LineCounts) -> int:
    return counts.flop_fp16 + counts.flop_fp32 + counts.flop_fp64


def reread_factor(launch: MeasuredLaunch) -> float | None:
    """Sectors requested over distinct sectors, loads and stores; None where nothing was accessed."""
    distinct = launch.trace.distinct_load_sectors + launch.trace.distinct_store_sectors
    return _requested(launch) / distinct if distinct else None


def intensity(launch: MeasuredLaunch) -> float | None:
    """FLOP per DRAM byte."""
    moved = dram_bytes(launch)
    return flop(launch.totals) / moved if moved else None


def roof(launch: MeasuredLaunch) -> str:
    """Which one binds: "dram_bandwidth" or the precision that takes most of the time: "fp32" ...; "" for
    neither.
    """
    times = {"dram_bandwidth": dram_bytes(launch) / launch.target.dram_bandwidth, **_flop_seconds(launch)}
    name = max(times, key=lambda key: times[key])
    return name if times[name] > 0 else ""


def ridge(launch: MeasuredLaunch) -> float:
    """FLOP per byte at which the compute roof of the kernel's main precision takes over from DRAM
    bandwidth.
    """
    return _peak(launch.target, _precision(launch)) / launch.target.dram_bandwidth


def attainable_share(launch: MeasuredLaunch) -> float | None:
    """The height of the roofline at the kernel's intensity, as a share of the peak: min(1, intensity /
    ridge).
    """
    here = intensity(launch)
    return min(1.0, here / ridge(launch)) if here is not None else None


def bounds(launch: MeasuredLaunch) -> Bounds:
    target, counts = launch.target, launch.totals
    clocks = target.sm_count * target.clock_khz * 1e3  # SM clocks a second, all SMs
    distinct = launch.trace.distinct_load_sectors + launch.trace.distinct_store_sectors
    requested, ideal = _requested(launch), counts.global_load_ideal + counts.global_store_ideal
    flop_seconds = sum(_flop_seconds(launch).values())
    share = flop(counts) / counts.active_lanes if counts.active_lanes else 0.0
    issue = max(0.0, counts.instructions / (ISSUE_PER_CLOCK * clocks) - flop_seconds)
    return Bounds(
        dram=dram_bytes(launch) / target.dram_bandwidth,
        flop=flop_seconds,
        reread=(2 * (requested - ideal) + max(0, ideal - distinct))
        * SECTOR_BYTES
        / (PORT_BYTES_PER_CLOCK * clocks),
        pipe=(shared_wavefronts(counts) + global_wavefronts(counts)) / clocks,
        issue=issue * share / (share + USUAL_FLOP_SHARE),
    )


def compulsory_bytes(parameters: Iterable[Parameter], extents: Mapping[str, int]) -> int:
    """Bytes that a task must move: what it reads, once, and what it writes, once."""
    total = 0
    for parameter in parameters:
        if parameter.kind == "array":
            size = extents[parameter.name] * np.dtype(parameter.dtype).itemsize
            total += size * (2 if parameter.access == "read_write" else 1)
    return total


def assess(launches: Sequence[MeasuredLaunch], task_bytes: int | None = None) -> Finding:
    """`task_bytes`: `compulsory_bytes` of the task; None where not known."""
    moved = sum(dram_bytes(launch) for launch in launches)
    if not moved and not any(flop(launch.totals) for launch in launches):
        return Finding(None, "No global memory is accessed and no FLOP executed.")
    needed_share = min(1.0, task_bytes / moved) if task_bytes is not None and moved else 1.0
    all_bounds = [bounds(launch) for launch in launches]
    needed = [each for each, launch in zip(all_bounds, launches, strict=True) if not launch.idle]
    ideal = sum(each.ideal(needed_share) for each in needed)
    actual = sum(each.actual for each in all_bounds)
    costliest = max(zip(all_bounds, launches, strict=True), key=lambda pair: pair[0].actual)
    return Finding(soft(ideal / actual), _note(*costliest, needed_share))


def _requested(launch: MeasuredLaunch) -> int:
    return launch.totals.global_load_sectors + launch.totals.global_store_sectors


def _flop_seconds(launch: MeasuredLaunch) -> dict[str, float]:
    counts, target = launch.totals, launch.target
    return {
        "fp16": counts.flop_fp16 / target.peak_fp16,
        "fp32": counts.flop_fp32 / target.peak_fp32,
        "fp64": counts.flop_fp64 / target.peak_fp64,
    }


def _precision(launch: MeasuredLaunch) -> str:
    times = _flop_seconds(launch)
    busiest = max(times, key=lambda name: times[name])
    return busiest if times[busiest] > 0 else "fp32"


def _peak(target: Target, precision: str) -> float:
    return {"fp16": target.peak_fp16, "fp32": target.peak_fp32, "fp64": target.peak_fp64}[precision]


def _note(each: Bounds, launch: MeasuredLaunch, needed_share: float) -> str:
    here, there, precision = intensity(launch), ridge(launch), _precision(launch)
    if here is None:
        place = f"No DRAM traffic; {precision} arithmetic binds"
    elif here == 0:
        place = f"No FLOP; DRAM bandwidth binds, with ~{dram_bytes(launch):,} bytes to move (estimate)"
    elif here < there:
        place = (
            f"~{number(here)} FLOP per DRAM byte (estimate), below the {number(there)} of "
            f"{launch.target.product}: DRAM bandwidth binds"
        )
    else:
        place = (
            f"~{number(here)} FLOP per DRAM byte (estimate), above the {number(there)} of "
            f"{launch.target.product}: the {precision} peak binds"
        )
    return f"{place}. {_obstacle(each, launch, needed_share)}"


def _obstacle(each: Bounds, launch: MeasuredLaunch, needed_share: float) -> str:
    """What costs most beyond the roof itself."""
    obstacles = {"reread": each.reread, "pipe": each.pipe, "issue": each.issue}
    worst = max(obstacles, key=lambda name: obstacles[name])
    if obstacles[worst] < 0.3 * each.ideal(1.0):
        if needed_share < 0.9:
            return f"The kernels move {number(1 / needed_share)} times the task's own bytes. Try fusing them."
        return "Little stands in the way."
    if worst == "reread":
        line = max(by_line([launch]), key=lambda line: line.global_load_sectors + line.global_store_sectors)
        factor = reread_factor(launch) or 1.0
        return (
            f"Each sector is asked for {number(factor)} times, most by {at(line.line).lower()}. "
            "Try keeping it in registers or a shared-memory tile."
        )
    if worst == "pipe":
        line = max(by_line([launch]), key=lambda line: shared_wavefronts(line) + global_wavefronts(line))
        start = f"{at(line.line)} keeps the SM's memory pipe busiest"
        if shared_wavefronts(line) > 2 * (line.shared_load_ideal + line.shared_store_ideal) > 0:
            return f"{start}, with bank conflicts."
        return f"{start}. Try more results per thread, or wider loads."
    return (
        f"{number(_instructions_per_flop(launch))} instructions are executed per FLOP instruction. "
        "Try more results per thread, wider loads, or unrolling."
    )


def _instructions_per_flop(launch: MeasuredLaunch) -> float:
    """Lane instructions over fused multiply-adds' worth of FLOP."""
    return launch.totals.active_lanes / (flop(launch.totals) / 2)
