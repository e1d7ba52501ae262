"""The choices that make a version of the kernels, and what each kernel makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agent.translator.pytorch.plan import Kernel

Rows = Literal["thread", "warp", "block"]
WARP = 32


@dataclass(frozen=True)
class Schedule:
    """Equal schedules give equal sources."""

    fuse: bool = False  # elementwise work inside its neighbours instead of kernels of its own
    threads: int = 256  # a block, where nothing else fixes it
    vector: int = 1  # elements a thread of an elementwise kernel
    rows: Rows = "thread"  # who reduces a row
    row_threads: int = 256  # a block, where a block reduces a row
    cached: bool = False  # keep a row in registers between the passes over it
    split: bool = False  # few long rows are reduced in two steps
    tile: Literal[0, 16, 64] = (
        0  # matrix products: 0 direct, 16 through shared memory, 64 with 4 x 4 in registers
    )


def row_mode(kernel: Kernel, schedule: Schedule) -> Rows:
    """Rows whose elements are apart in memory stay with one thread each: neighbouring threads read
    neighbours.
    """
    if not kernel.reduces or kernel.reduces[0].rereads or kernel.length < WARP:
        return "thread"
    contiguous = len(kernel.space) - 1 in kernel.axes
    if not contiguous and kernel.rows >= 256:
        return "thread"
    return schedule.rows


def row_threads(kernel: Kernel, schedule: Schedule) -> int:
    """Threads that share a row: no more than it has elements, in whole warps."""
    match row_mode(kernel, schedule):
        case "thread":
            return 1
        case "warp":
            return WARP
        case "block":
            return min(schedule.row_threads, -(-kernel.length // WARP) * WARP)


MOST_CACHED = 32  # registers a thread may hold of a row


def is_cached(kernel: Kernel, schedule: Schedule) -> bool:
    threads = row_threads(kernel, schedule)
    return schedule.cached and threads > 1 and -(-kernel.length // threads) <= MOST_CACHED
