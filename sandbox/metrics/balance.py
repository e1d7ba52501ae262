"""Load balance: is the work spread over enough warps, and evenly?

    fill  = min(1, warps / min(capacity, instructions / 4096))
    score = soft(fill) / (1 + v^2)

`capacity` is how many warps the GPU holds at this occupancy; instructions / 4096 is how many warps the work
could feed if each got at least 4,096 instructions; v is the coefficient of variation of executed instructions
over warps. Launches are averaged by their instructions.

An emulator runs small sizes, so a grid of less than one wave is ordinary and `waves` alone means nothing.
What carries over to the real size is whether the *work* was cut finely enough: 128 warps of 20 instructions
are all that 4,096 elements offer (fill 1), while one block that walks over a million elements leaves a GPU
idle at any size (fill near 0). The tail (idle share of the last wave) depends on the very size, so it is
reported, not scored.
"""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.metrics.finding import Finding, counted, number, percent, soft
from sandbox.metrics.launches import MeasuredLaunch, variation

INSTRUCTIONS_PER_WARP = 4096


def waves(launch: MeasuredLaunch) -> float:
    """Blocks over the blocks that the GPU holds at once; 0 where not even one fits."""
    resident = launch.occupancy.blocks_per_sm * launch.target.sm_count
    return launch.blocks / resident if resident else 0.0


def tail_fraction(launch: MeasuredLaunch) -> float:
    """Idle share of the last wave."""
    return -waves(launch) % 1.0


def fill(launch: MeasuredLaunch) -> float:
    warps = launch.trace.warps.count / launch.repeats
    capacity = launch.occupancy.blocks_per_sm * launch.occupancy.warps_per_block * launch.target.sm_count
    feedable = launch.totals.instructions / launch.repeats / INSTRUCTIONS_PER_WARP
    wanted = min(capacity, feedable)
    return min(1.0, warps / wanted) if wanted else 1.0


def assess(launches: Sequence[MeasuredLaunch]) -> Finding:
    total = sum(launch.totals.instructions for launch in launches)
    if not total:
        return Finding(None, "No kernel executed an instruction.")
    score = sum(_score(launch) * launch.totals.instructions for launch in launches) / total
    worst = max(launches, key=lambda launch: (1 - _score(launch)) * launch.totals.instructions)
    return Finding(score, _note(worst))


def _score(launch: MeasuredLaunch) -> float:
    return soft(fill(launch)) / (1 + variation(launch.trace.warps) ** 2)


def _note(launch: MeasuredLaunch) -> str:
    warps = launch.trace.warps
    spread = variation(warps)
    filled = fill(launch)
    if soft(filled) < 1 / (1 + spread**2):
        return (
            f"{launch.name} has only {counted(warps.count / launch.repeats, 'warp')} of "
            f"{number(warps.mean)} instructions each, {percent(filled)} of what the work could keep busy. "
            "Try giving each thread less."
        )
    within = "between blocks" if variation(launch.trace.blocks) > 0.5 * spread else "within blocks"
    where = f", mostly {within}" if spread > 0.05 else ""
    return (
        f"Instructions per warp vary by {percent(spread)}{where} ({warps.minimum:,} to {warps.maximum:,}); "
        f"{number(waves(launch))} waves on {launch.target.sm_count} SMs at this size."
    )
