"""What to try next, each argued from what the judge measured on the version at hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from agent.translator.pytorch.emit_map import can_vectorise
from agent.translator.pytorch.lower import FEW_ROWS, LONG_ROW
from agent.translator.pytorch.plan import Kernel, Plan
from agent.translator.pytorch.schedule import WARP, Schedule, is_cached, row_mode
from sandbox.tasks.pytorch.graph import DTYPES
from sandbox.types import Evaluation, KernelMetrics, LineMetrics

SECTOR_BYTES = 32
_FEW_BLOCKS = 1.0  # waves: fewer leave multiprocessors without work
_REREAD = 1.5  # times the data: a row is read again in later passes
_LOW_OCCUPANCY = 0.75
_MULTIPROCESSORS = 132  # of an H100 or H200; other targets are near enough for "too few"


@dataclass(frozen=True)
class Proposal:
    schedule: Schedule
    title: str
    reason: str


def propose(plan: Plan, fused: Plan | None, schedule: Schedule, evaluation: Evaluation) -> Iterator[Proposal]:
    """Best first. Nothing without measurements."""
    if evaluation.metrics is None:
        return
    measured = {k.name: k for k in evaluation.metrics.kernels}
    yield from _tile(plan, schedule, measured)
    yield from _split_rows(plan, schedule, measured)
    yield from _share_rows(plan, schedule, measured)
    yield from _fuse(plan, fused, schedule)
    yield from _cache_rows(plan, schedule, measured)
    yield from _vectorise(plan, schedule, measured)
    yield from _whole_blocks(plan, schedule, measured)
    yield from _resize(plan, schedule, measured)


def _fuse(plan: Plan, fused: Plan | None, schedule: Schedule) -> Iterator[Proposal]:
    if schedule.fuse or fused is None or len(fused.kernels) >= len(plan.kernels):
        return
    passed = sum(_size(value.numel, value.dtype) for value in plan.scratch)
    saved = passed - sum(_size(value.numel, value.dtype) for value in fused.scratch)
    yield Proposal(
        replace(schedule, fuse=True),
        "Fuse elementwise work into its neighbours",
        f"{len(plan.kernels)} launches pass {_bytes(passed)} through memory between them; with "
        f"{len(fused.kernels)}, {_bytes(saved)} never leave the registers.",
    )


def _tile(plan: Plan, schedule: Schedule, measured: dict[str, KernelMetrics]) -> Iterator[Proposal]:
    products = [k for k in plan.kernels if k.product is not None]
    found = _heaviest(products, measured)
    if found is None or schedule.tile == 64:
        return
    kernel, metrics = found
    batch, m, n = kernel.product.shape if kernel.product else (1, 1, 1)
    used = _size(kernel.length * batch * (m + n), kernel.reduces[0].base.dtype) // SECTOR_BYTES
    requests = metrics.global_load_sectors
    if schedule.tile == 0:
        yield Proposal(
            replace(schedule, tile=64 if min(m, n) >= 32 and kernel.length >= 8 else 16),
            "Tile the matrix product through shared memory",
            f"{metrics.name} loads {requests} sectors for operands of {used}: every element is read again "
            f"by {max(m, n)} threads, and a tile in shared memory reads it once for all of them.",
        )
        if min(m, n) >= 32:
            yield Proposal(
                replace(schedule, tile=16),
                "Tile the matrix product with one element a thread",
                f"{metrics.name} loads {requests} sectors for operands of {used}; tiles of 16 x 16 read each "
                "operand once in 16.",
            )
    elif schedule.tile == 16 and min(m, n) >= 32:
        yield Proposal(
            replace(schedule, tile=64),
            "Hold 4 x 4 results a thread in registers",
            f"{metrics.name} does {_flop(metrics)} FLOP in {metrics.instructions} warp instructions; sixteen "
            "results a thread use each value from shared memory four times.",
        )


def _split_rows(plan: Plan, schedule: Schedule, measured: dict[str, KernelMetrics]) -> Iterator[Proposal]:
    few = [k for k in plan.kernels if k.reduces and k.rows < FEW_ROWS and k.length >= LONG_ROW]
    found = _heaviest([k for k in few if not k.reduces[0].rereads], measured)
    if found is None or schedule.split:
        return
    kernel, metrics = found
    yield Proposal(
        replace(schedule, split=True, rows="block", row_threads=_block_for(plan)),
        "Reduce long rows in two steps",
        f"{metrics.name} has {kernel.rows} row{'s' if kernel.rows > 1 else ''} of {kernel.length} elements "
        f"and fills {metrics.waves:.3f} waves; parts of a row can be reduced side by side and joined after.",
    )


def _share_rows(plan: Plan, schedule: Schedule, measured: dict[str, KernelMetrics]) -> Iterator[Proposal]:
    if schedule.rows != "thread":
        return
    changed = replace(schedule, rows="warp", row_threads=_block_for(plan))
    found = _heaviest([k for k in plan.kernels if row_mode(k, changed) == "warp"], measured)
    if found is None:
        return
    kernel, metrics = found
    worst = _worst_line(metrics)
    where = f"Line {worst.line}" if worst else metrics.name
    yield Proposal(
        changed,
        "Reduce each row with a warp",
        f"{where} loads {_per_request(worst, metrics):.1f} sectors per request (4 would do): neighbouring "
        f"threads stand on different rows of {kernel.length}; a warp a row reads neighbours and joins by "
        "shuffles.",
    )


def _cache_rows(plan: Plan, schedule: Schedule, measured: dict[str, KernelMetrics]) -> Iterator[Proposal]:
    changed = replace(schedule, cached=True)
    rereading = []
    for kernel in plan.kernels:
        metrics = measured.get(kernel.name)
        if metrics is None or not is_cached(kernel, changed):
            continue
        if metrics.global_load_sectors > _REREAD * _row_sectors(kernel):
            rereading.append(kernel)
    found = _heaviest(rereading, measured)
    if schedule.cached or found is None:
        return
    kernel, metrics = found
    yield Proposal(
        changed,
        "Keep each row in registers between passes",
        f"{metrics.name} loads {metrics.global_load_sectors} sectors where one pass over its rows takes "
        f"{_row_sectors(kernel)}: every pass reads and computes the row again.",
    )


def _whole_blocks(plan: Plan, schedule: Schedule, measured: dict[str, KernelMetrics]) -> Iterator[Proposal]:
    """Long rows that leave multiprocessors without work get a block each."""
    changed = replace(schedule, rows="block", row_threads=_block_for(plan))
    gaining = [
        k
        for k in plan.kernels
        if row_mode(k, changed) == "block" != row_mode(k, schedule)
        and k.length >= 4 * WARP
        and k.name in measured
        and measured[k.name].waves < _FEW_BLOCKS
    ]
    found = _heaviest(gaining, measured)
    if schedule.rows == "block" or found is None:
        return
    kernel, metrics = found
    yield Proposal(
        changed,
        "Reduce each row with a block",
        f"{metrics.name} fills {metrics.waves:.2f} waves with a {row_mode(kernel, schedule)} for each of "
        f"{kernel.rows} rows; a block a row of {kernel.length} brings more threads to the same work.",
    )


def _vectorise(plan: Plan, schedule: Schedule, measured: dict[str, KernelMetrics]) -> Iterator[Proposal]:
    if schedule.vector == 4:
        return
    found = _heaviest([k for k in plan.kernels if can_vectorise(plan, k)], measured)
    if found is None:
        return
    _, metrics = found
    requests = metrics.global_load_requests + metrics.global_store_requests
    yield Proposal(
        replace(schedule, vector=4),
        "Move four elements at once",
        f"{metrics.name} makes {requests} memory requests of 4 bytes a thread; 16 bytes a thread take about "
        f"{requests // 4}.",
    )


def _resize(plan: Plan, schedule: Schedule, measured: dict[str, KernelMetrics]) -> Iterator[Proposal]:
    """Other block sizes, where this one limits occupancy or makes too few blocks to go round."""
    sized = [k for k in plan.kernels if k.product is None or not schedule.tile]
    found = _heaviest(sized, measured)
    if found is None:
        return
    _, metrics = found
    blocks = metrics.grid[0] * metrics.grid[1] * metrics.grid[2]
    if metrics.theoretical_occupancy < _LOW_OCCUPANCY:
        choices = [t for t in (128, 512, 64) if t != schedule.threads]
        why = (
            f"{metrics.name} keeps {metrics.theoretical_occupancy:.0%} of the warps a multiprocessor can "
            f"hold, limited by {metrics.occupancy_limiter.replace('_', ' ')}"
        )
    elif blocks < _MULTIPROCESSORS and metrics.block[0] == schedule.threads:
        choices = [t for t in (128, 64) if t < schedule.threads]
        why = f"{metrics.name} launches {blocks} blocks, fewer than there are multiprocessors"
    else:
        return
    for threads in choices:
        yield Proposal(
            replace(schedule, threads=threads),
            f"Blocks of {threads} threads",
            f"{why}; blocks of {threads} threads share the work out differently.",
        )


def _heaviest(
    kernels: list[Kernel], measured: dict[str, KernelMetrics]
) -> tuple[Kernel, KernelMetrics] | None:
    """The kernel with the most warp instructions, of those that were measured."""
    known = [(k, measured[k.name]) for k in kernels if k.name in measured]
    return max(known, key=lambda pair: pair[1].instructions, default=None)


def _worst_line(metrics: KernelMetrics) -> LineMetrics | None:
    loading = [line for line in metrics.lines if line.global_load_requests]
    return max(loading, key=lambda line: line.global_load_sectors, default=None)


def _per_request(line: LineMetrics | None, metrics: KernelMetrics) -> float:
    if line is not None:
        return line.global_load_sectors / line.global_load_requests
    return metrics.global_load_sectors / max(1, metrics.global_load_requests)


def _block_for(plan: Plan) -> int:
    """Threads for a block a row: about four elements a thread of the longest row."""
    longest = max((k.length for k in plan.kernels if k.reduces and not k.reduces[0].rereads), default=WARP)
    return next((t for t in (64, 128, 256, 512) if 4 * t >= longest), 1024)


def _size(elements: int, dtype: str) -> int:
    """Bytes of so many elements."""
    return elements * np.dtype(DTYPES[dtype]).itemsize


def _row_sectors(kernel: Kernel) -> int:
    """Sectors that one pass over a kernel's rows takes."""
    return _size(kernel.rows * kernel.length, kernel.reduces[0].base.dtype) // SECTOR_BYTES


def _flop(metrics: KernelMetrics) -> int:
    return metrics.flop.fp32 + metrics.flop.fp64


def _bytes(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"
