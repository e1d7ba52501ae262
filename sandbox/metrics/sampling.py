"""From counts of a sample of blocks to estimates for all blocks.

    estimate = count * blocks / counted blocks

The sample is drawn evenly from all over the grid (`sampled` in sandbox/emulator/runtime/order.h), so each
estimate of a sum is unbiased; blocks that differ make it vary. Distinct sectors are the exception: blocks of
the sample hardly meet those with which they share data, so what is estimated is an upper bound, and with it
the DRAM bytes. The least and the most instructions of a warp are those of the sample.
"""

from __future__ import annotations

import math

from sandbox.emulator.trace import LaunchTrace, LineCounts, Spread

_COUNTERS = tuple(name for name in LineCounts.model_fields if name not in ("line", "file"))


def estimated(trace: LaunchTrace, launches: int = 1) -> LaunchTrace:
    """`trace`: of so many equal `launches`. The same where all blocks were counted, or none."""
    blocks = math.prod(trace.grid) * launches
    counted = trace.counted_blocks
    if not counted or counted >= blocks:
        return trace
    factor = blocks / counted
    return trace.model_copy(
        update={
            "barriers_executed": round(trace.barriers_executed * factor),
            "useless_barriers": round(trace.useless_barriers * factor),
            "distinct_load_sectors": round(trace.distinct_load_sectors * factor),
            "distinct_store_sectors": round(trace.distinct_store_sectors * factor),
            "warps": _spread(trace.warps, factor),
            "blocks": _spread(trace.blocks, factor),
            "lines": [_line(counts, factor) for counts in trace.lines],
        }
    )


def _spread(spread: Spread, factor: float) -> Spread:
    return spread.model_copy(update={"count": round(spread.count * factor)})


def _line(counts: LineCounts, factor: float) -> LineCounts:
    return counts.model_copy(update={name: round(getattr(counts, name) * factor) for name in _COUNTERS})
