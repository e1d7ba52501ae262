"""Metrics as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sandbox.types import KernelMetrics, LineMetrics

_COLUMNS = (
    "line",
    "instr",
    "lanes",
    "ld req",
    "ld sect",
    "st req",
    "st sect",
    "conflicts",
    "diverged",
    "flop",
)
_SYNCHRONISATION = ("barriers", "useless", "atomics", "same addr")


def kernel_table(kernel: KernelMetrics, source: list[str]) -> str:
    """A kernel's lines with what each cost; `source`: the text of its file, as far as it is known.

    Barriers are counted by block, and how many of them order nothing; `same addr`: lanes of an atomic request
    that meet on one address.
    """
    times = f", {kernel.launches} launches" if kernel.launches > 1 else ""
    head = f"\n{kernel.name} <<<{kernel.grid}, {kernel.block}>>>{times}"
    head += f", occupancy {kernel.theoretical_occupancy:.0%}"
    synchronises = bool(kernel.barriers_per_thread or kernel.atomics)
    rows = [
        _row(line) + (_synchronisation(line) if synchronises else []) for line in kernel.lines if line.line
    ]
    texts = [
        source[line.line - 1].strip() if line.line <= len(source) else ""
        for line in kernel.lines
        if line.line
    ]
    out = [f"{head} (limited by {kernel.occupancy_limiter.replace('_', ' ')})"]
    out += [f"  {text}" for text in _whole(kernel)]
    columns = _COLUMNS + (_SYNCHRONISATION if synchronises else ())
    out.append(" ".join(f"{name:>9}" for name in columns))
    out += [
        " ".join(f"{cell:>9}" for cell in row) + f"  {text}" for row, text in zip(rows, texts, strict=True)
    ]
    return "\n".join(out)


def _whole(kernel: KernelMetrics) -> Iterator[str]:
    """What is said of the kernel as a whole."""
    if kernel.counted_blocks < kernel.blocks:
        yield f"counted in {kernel.counted_blocks:,} of {kernel.blocks:,} blocks: every count is an estimate"
    yield (
        f"balance: instructions vary by {kernel.warp_instruction_spread:.0%} over warps and "
        f"{kernel.block_instruction_spread:.0%} over blocks; {kernel.waves:.3g} waves, "
        f"{kernel.tail_fraction:.0%} of the last one idle"
    )
    if kernel.barriers_executed:
        yield (
            f"barriers: {kernel.barriers_per_thread:.3g} per thread; {kernel.useless_barriers:,} of "
            f"{kernel.barriers_executed:,} order nothing"
        )
    if kernel.atomic_lanes_per_address is not None:
        lanes = kernel.atomic_lanes_per_address
        yield f"atomics: {kernel.atomics:,} requests, lanes per address: {lanes:.3g}"


def _synchronisation(line: LineMetrics) -> list[Any]:
    lanes = line.atomic_lanes_per_address
    return [
        line.barriers_executed,
        line.useless_barriers,
        line.atomics,
        "" if lanes is None else f"{lanes:.1f}",
    ]


def _row(line: LineMetrics) -> list[Any]:
    return [
        line.line,
        line.instructions,
        f"{line.active_threads_per_warp:.1f}",
        line.global_load_requests,
        line.global_load_sectors,
        line.global_store_requests,
        line.global_store_sectors,
        line.shared_load_bank_conflicts + line.shared_store_bank_conflicts,
        line.divergent_branches,
        line.flop,
    ]
