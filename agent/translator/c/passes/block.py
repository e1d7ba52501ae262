"""Other block shapes, where the measured occupancy leaves room."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agent.translator.c.kernels import Context
from agent.translator.c.passes.measured import Measured, Offer, number
from agent.translator.c.schedules import Choice
from agent.translator.c.stages import MapStage


def offers(context: Context, stage: MapStage, choice: Choice, measured: Measured) -> Iterator[Offer]:
    """Smaller blocks pack better where registers limit; and spread few threads over more multiprocessors."""
    special = choice.rows or choice.tile or choice.staged or choice.private or choice.vector > 1
    if special or choice.block or len(stage.dims) > 2:
        return
    smaller: tuple[int, ...] = (64,) if len(stage.dims) == 1 else (32, 4)
    kernel = measured.kernel
    if kernel.theoretical_occupancy < 0.9:
        reason = (
            f"An SM can hold {number(100 * kernel.theoretical_occupancy)}% of its warps: "
            f"{kernel.occupancy_limiter.replace('_', ' ')} limit it. Smaller blocks fill what is left over."
        )
        yield Offer(replace(choice, block=smaller), "Use smaller blocks", reason, 4.0)
    blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2]
    if blocks < 132 and measured.warps > blocks:
        reason = (
            f"Only {blocks} block{'s' if blocks > 1 else ''} for 132 multiprocessors at this size. "
            "Smaller blocks reach more of them."
        )
        yield Offer(replace(choice, block=smaller), "Spread the work over more blocks", reason, 1.0)
