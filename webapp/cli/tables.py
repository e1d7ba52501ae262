"""Metrics as tables for a terminal."""

from __future__ import annotations

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


def kernel_table(kernel: KernelMetrics, source: list[str]) -> str:
    """A kernel's lines with what each cost; `source`: the text of its file, as far as it is known."""
    times = f", {kernel.launches} launches" if kernel.launches > 1 else ""
    head = f"\n{kernel.name} <<<{kernel.grid}, {kernel.block}>>>{times}"
    head += f", occupancy {kernel.theoretical_occupancy:.0%}"
    rows = [_row(line) for line in kernel.lines if line.line]
    texts = [
        source[line.line - 1].strip() if line.line <= len(source) else ""
        for line in kernel.lines
        if line.line
    ]
    out = [f"{head} (limited by {kernel.occupancy_limiter.replace('_', ' ')})"]
    out.append(" ".join(f"{name:>9}" for name in _COLUMNS))
    out += [
        " ".join(f"{cell:>9}" for cell in row) + f"  {text}" for row, text in zip(rows, texts, strict=True)
    ]
    return "\n".join(out)


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
