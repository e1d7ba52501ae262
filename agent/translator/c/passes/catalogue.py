"""All passes: what they offer for a kernel, and how their choices are written out."""

from __future__ import annotations

from collections.abc import Iterator

from agent.translator.c.kernels import Context, KernelCode, map_kernel, serial_kernel
from agent.translator.c.passes import (
    block,
    histogram,
    matrix,
    order,
    reduction,
    rows,
    spoiled,
    staged,
    transposed,
    wide,
)
from agent.translator.c.passes.measured import Measured, Offer
from agent.translator.c.reduce import reduce_kernel
from agent.translator.c.schedules import Choice
from agent.translator.c.stages import Kernel, MapStage, ReduceStage, SerialStage


def emit_kernel(context: Context, stage: Kernel, choice: Choice) -> KernelCode:
    """The kernel as its choice says."""
    return spoiled.spoilt_code(_kernel(context, spoiled.spoilt_stage(stage, choice), choice), choice)


def _kernel(context: Context, stage: Kernel, choice: Choice) -> KernelCode:
    match stage:
        case MapStage():
            return _map(context, stage, choice)
        case ReduceStage():
            return reduce_kernel(context, stage, choice)
        case SerialStage():
            return serial_kernel(context, stage)


def _map(context: Context, stage: MapStage, choice: Choice) -> KernelCode:
    if choice.turned:
        return transposed.transposed_kernel(context, stage, choice)
    if choice.tile:
        return matrix.matrix_kernel(context, stage, choice)
    if choice.rows:
        return rows.rows_kernel(context, stage, choice)
    if choice.staged:
        return staged.staged_kernel(context, stage, choice)
    if choice.private:
        return histogram.private_kernel(context, stage, choice)
    if choice.vector > 1:
        return wide.vector_kernel(context, stage, choice)
    if choice.per_thread > 1:
        return wide.coarse_kernel(context, stage, choice)
    return map_kernel(context, stage, choice)


def offers(
    context: Context, stage: Kernel, choice: Choice, measured: Measured, finish: Measured | None
) -> Iterator[Offer]:
    """Every improvement that is legal, not yet made and argued for by a measured number.

    `finish`: the numbers of a reduction's second kernel.
    """
    if isinstance(stage, ReduceStage):
        yield from reduction.offers(context, stage, choice, measured, finish)
    if isinstance(stage, MapStage):
        yield from order.offers(context, stage, choice, measured)
        yield from rows.offers(context, stage, choice, measured)
        yield from matrix.offers(context, stage, choice, measured)
        for each in (transposed, staged, histogram, wide, block):
            yield from each.offers(context, stage, choice, measured)
