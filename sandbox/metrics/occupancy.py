"""Occupancy: how many warps an SM can hold at once, and what stops it from holding more.

`calculate` is CUDA's own calculation (registers handed out per warp in units of 256 and in four
sub-partitions, shared memory in units of 128 bytes plus 1 KiB that the system keeps per block, limits on
blocks and warps). The share of the warps an SM could hold is the *theoretical occupancy* o.

Score: 1 - (1 - o)^3, averaged over launches by instructions: 1/8 -> 0.33, 1/4 -> 0.58, 1/2 -> 0.88,
3/4 -> 0.98. Half of the warps hide most latency, and kernels that hold their data in registers are fast at a
quarter, so the last doubling is worth little. The grid does not enter: a grid too small to fill the GPU is
`balance`'s concern.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sandbox.metrics.finding import Finding, percent
from sandbox.targets import Target

if TYPE_CHECKING:
    from sandbox.metrics.launches import MeasuredLaunch

Limiter = Literal["registers", "shared_memory", "block_size", "warps", "blocks"]


@dataclass(frozen=True)
class Occupancy:
    """Of one launch configuration on one target."""

    blocks_per_sm: int  # 0: the launch does not fit at all
    warps_per_block: int
    theoretical: float  # resident warps over the warps an SM can hold
    limiter: Limiter  # "warps": full
    limits: dict[str, int]  # blocks per SM that each resource alone would allow


def calculate(target: Target, threads: int, registers: int | None, shared_bytes: int) -> Occupancy:
    """`threads` per block, `registers` per thread (None: unknown, not limiting), `shared_bytes` per block,
    static and dynamic together, without the system's own."""
    warps = -(-threads // target.warp_size)
    limits = {
        "registers": _blocks_by_registers(target, warps, registers),
        "shared_memory": _blocks_by_shared_memory(target, shared_bytes),
        "blocks": target.max_blocks_per_sm,
        "block_size": target.max_warps_per_sm // warps,
    }
    blocks = min(limits.values())
    theoretical = blocks * warps / target.max_warps_per_sm
    return Occupancy(blocks, warps, theoretical, _limiter(limits, blocks, theoretical), limits)


def _blocks_by_registers(target: Target, warps: int, registers: int | None) -> int:
    if not registers:
        return target.max_blocks_per_sm
    unit, partitions = target.register_allocation_unit, target.warp_allocation_granularity
    per_warp = -(-registers * target.warp_size // unit) * unit
    rounded_warps = -(-warps // partitions) * partitions
    if per_warp * rounded_warps > target.max_registers_per_block:
        return 0
    warps_per_partition = target.registers_per_sm // partitions // per_warp
    return warps_per_partition * partitions // warps


def _blocks_by_shared_memory(target: Target, shared_bytes: int) -> int:
    if shared_bytes > target.max_shared_bytes_per_block:
        return 0
    unit = target.shared_allocation_unit
    per_block = -(-(shared_bytes + target.reserved_shared_bytes_per_block) // unit) * unit
    return target.shared_bytes_per_sm // per_block


def _limiter(limits: dict[str, int], blocks: int, theoretical: float) -> Limiter:
    if theoretical == 1:
        return "warps"
    order: tuple[Limiter, ...] = ("block_size", "registers", "shared_memory", "blocks")
    return next(name for name in order if limits[name] == blocks)


def next_step(target: Target, threads: int, registers: int | None, shared_bytes: int) -> str:
    """What would let an SM hold more warps, as a sentence without a full stop; "" when it is full."""
    now = calculate(target, threads, registers, shared_bytes)
    if now.limiter == "warps":
        return ""
    if now.limiter == "registers" and registers:
        return _fewer(
            "registers per thread",
            range(registers - 1, 15, -1),
            lambda count: calculate(target, threads, count, shared_bytes),
            now,
        )
    if now.limiter == "shared_memory":
        unit = target.shared_allocation_unit
        return _fewer(
            "bytes of shared memory per block",
            range((shared_bytes - 1) // unit * unit, -1, -unit),
            lambda count: calculate(target, threads, registers, count),
            now,
        )
    return _other_block_size(target, threads, registers, shared_bytes, now)


def _fewer(what: str, counts: range, occupancy_at: Callable[[int], Occupancy], now: Occupancy) -> str:
    for count in counts:
        there = occupancy_at(count)
        if there.theoretical > now.theoretical:
            return f"{count:,} {what} would reach {percent(there.theoretical)}"
    return f"fewer {what} alone would not help"


def _other_block_size(
    target: Target, threads: int, registers: int | None, shared_bytes: int, now: Occupancy
) -> str:
    """The block size with the highest occupancy; of those a smaller one first, and the nearest by ratio."""
    occupancies = {
        size: calculate(target, size, registers, shared_bytes).theoretical
        for size in range(target.warp_size, target.max_threads_per_block + 1, target.warp_size)
    }
    best = min(
        occupancies,
        key=lambda size: (-occupancies[size], size > threads, max(size / threads, threads / size)),
    )
    if occupancies[best] <= now.theoretical:
        return "no other block size would help"
    return f"blocks of {best} threads would reach {percent(occupancies[best])}"


def score(theoretical: float) -> float:
    return float(1 - (1 - theoretical) ** 3)


def assess(launches: Sequence[MeasuredLaunch]) -> Finding:
    total = sum(launch.totals.instructions for launch in launches)
    if not total:
        return Finding(None, "No kernel executed an instruction, so occupancy says nothing.")
    mean = (
        sum(score(launch.occupancy.theoretical) * launch.totals.instructions for launch in launches) / total
    )
    costliest = max(launches, key=lambda launch: launch.totals.instructions)
    return Finding(mean, _note(costliest))


def _note(launch: MeasuredLaunch) -> str:
    now, target = launch.occupancy, launch.target
    threads = launch.threads_per_block
    unknown = "" if launch.registers else " (registers unknown)"
    start = f"An SM can hold {percent(now.theoretical)} of its warps{unknown}: "
    match now.limiter:
        case "warps":
            return start + f"{now.blocks_per_sm} blocks of {threads} threads, nothing in the way."
        case "registers":
            cause = f"{launch.registers} registers per thread allow {now.blocks_per_sm} blocks of {threads}"
        case "shared_memory":
            cause = (
                f"{launch.shared_bytes:,} bytes of shared memory per block allow {now.blocks_per_sm} blocks"
            )
        case "blocks":
            cause = (
                f"at most {target.max_blocks_per_sm} blocks are resident, and one has only {threads} threads"
            )
        case "block_size":
            cause = f"blocks of {now.warps_per_block} warps do not divide its {target.max_warps_per_sm} warps"
    step = next_step(target, threads, launch.registers, launch.shared_bytes)
    return f"{start}{cause}; {step}."
