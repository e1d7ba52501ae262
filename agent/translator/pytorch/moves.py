"""What to try next, each argued from what the judge measured on the version at hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent.translator.pytorch.emit_map import can_vectorise
from agent.translator.pytorch.lower import FEW_ROWS, LONG_ROW
from agent.translator.pytorch.plan import Kernel, Plan
from agent.translator.pytorch.schedule import WARP, Schedule, is_cached, row_mode
from sandbox.types import Evaluation, KernelMetrics, LineMetrics

_FULL_WARP = 0.9  # of 32 lanes: fewer active ones are worth a move
_FEW_BLOCKS = 1.0  # waves: fewer leave multiprocessors without work


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
    yield from _fuse(plan, fused, schedule, measured)
    yield from _cache_rows(plan, schedule, measured)
    yield from _vectorise(plan, schedule, measured)
    yield from _resize(plan, schedule, measured)


def _fuse(
    plan: Plan, fused: Plan | None, schedule: Schedule, measured: dict[str, KernelMetrics]
) -> Iterator[Proposal]:
    if schedule.fuse or fused is None or len(fused.kernels) >= len(plan.kernels):
        return
    moved = sum(4 * value.numel for value in plan.scratch) - sum(4 * value.numel for value in fused.scratch)
    launches = f"{len(plan.kernels)} launches" if len(plan.kernels) > 1 else "1 launch"
    yield Proposal(
        replace(schedule, fuse=True),
        "Fuse elementwise work into its neighbours",
        f"{launches} pass {_bytes(sum(4 * v.numel for v in plan.scratch))} through memory between them; fused, "
        f"{len(fused.kernels)} remain and {_bytes(moved)} never leave the registers.",
    )


def _tile(plan: Plan, schedule: Schedule, measured: dict[str, KernelMetrics]) -> Iterator[Proposal]:
    products = [k for k in plan.kernels if k.product is not None]
    found = _heaviest(products, measured)
    if found is None or schedule.tile == 64:
        return
    kernel, metrics = found
    batch, m, n = kernel.product.shape if kernel.product else (1, 1, 1)
    used = kernel.length * batch * (m + n) * 4 // 32
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
            f"{metrics.name} does {_flop(metrics)} FLOP in {metrics.instructions} warp instructions; sixteen results "
            "a thread use each value from shared memory four times.",
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
        f"{metrics.name} has {kernel.rows} row{'s' if kernel.rows > 1 else ''} of {kernel.length} elements and fills "
        f"{metrics.waves:.3f} waves; parts of the rows can be reduced side by side and joined afterwards.",
    )


def _share_rows(plan: Plan, schedule: Schedule, measured: dict[str, KernelMetrics]) -> Iterator[Proposal]:
    for mode in ("warp", "block"):
        if mode == schedule.rows:
            continue
        changed = replace(schedule, rows=mode, row_threads=_block_for(plan))  # type: ignore[arg-type]
        gaining = [k for k in plan.kernels if row_mode(k, changed) != row_mode(k, schedule)]
        found = _heaviest(gaining, measured)
        if found is None:
            continue
        kernel, metrics = found
        if mode == "block" and kernel.length < 4 * WARP:
            continue
        worst = _worst_line(metrics)
        if schedule.rows == "thread":
            where = f"line {worst.line} loads" if worst else f"{metrics.name} loads"
            sectors = _per_request(worst, metrics)
            reason = (
                f"{where} {sectors:.1f} sectors per request (4 would do): neighbouring threads stand on "
                f"different rows of {kernel.length}; a {mode} a row reads neighbours."
            )
        elif mode == "block":
            reason = (
                f"{metrics.name} fills {metrics.waves:.2f} waves with {kernel.rows} rows; a block a row brings "
                f"{row_mode(kernel, changed)}s of threads to rows of {kernel.length}."
            )
        else:
            reason = (
                f"{metrics.name} executes {metrics.barriers_per_thread:.0f} barriers a thread over rows of "
                f"{kernel.length}; within a warp shuffles need none."
            )
        yield Proposal(changed, f"Reduce each row with a {mode}", reason)


def _cache_rows(plan: Plan, schedule: Schedule, measured: dict[str, KernelMetrics]) -> Iterator[Proposal]:
    changed = replace(schedule, cached=True)
    found = _heaviest([k for k in plan.kernels if is_cached(k, changed)], measured)
    if schedule.cached or found is None:
        return
    kernel, metrics = found
    size = kernel.rows * kernel.length * 4 // 32
    yield Proposal(
        changed,
        "Keep each row in registers between passes",
        f"{metrics.name} loads {metrics.global_load_sectors} sectors where one pass over the rows takes {size}: "
        "it reads and computes every row again in each pass.",
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
    found = _heaviest(plan.kernels, measured)
    if found is None:
        return
    _, metrics = found
    for threads in (128, 256, 512, 64):
        if threads == schedule.threads:
            continue
        if metrics.waves < _FEW_BLOCKS and threads > schedule.threads:
            continue
        why = (
            f"{metrics.name} fills {metrics.waves:.2f} waves with {metrics.tail_fraction:.0%} of the last idle, at "
            f"{metrics.theoretical_occupancy:.0%} occupancy limited by {metrics.occupancy_limiter.replace('_', ' ')}; "
            f"blocks of {threads} threads share the work out differently."
        )
        yield Proposal(replace(schedule, threads=threads), f"Blocks of {threads} threads", why)


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


def _flop(metrics: KernelMetrics) -> int:
    return metrics.flop.fp32 + metrics.flop.fp64


def _bytes(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"
