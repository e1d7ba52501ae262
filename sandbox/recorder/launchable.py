"""What the device would run, known where no hostile code runs.

The recording runtime refuses impossible launches with CUDA's own errors, but it lives in the candidate's
process, where a plan can be written past it. Before a plan reaches a replayer its launches are looked at
again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sandbox.plan import Launch, LaunchPlan
from sandbox.targets import Target
from sandbox.types import CompiledKernel

Layout = Mapping[str, Sequence[tuple[int, int]]]  # mangled kernel name -> (offset, size) of each parameter


@dataclass(frozen=True)
class Kernel:
    """One kernel of a candidate, as the compiler's own words have it."""

    symbol: str
    registers: int
    shared_bytes: int  # static
    local_bytes: int
    max_threads: int  # of a block: `__launch_bounds__`, else the device's limit
    parameters: Sequence[tuple[int, int]]  # (offset, size)

    @property
    def parameter_bytes(self) -> int:
        return max((offset + size for offset, size in self.parameters), default=0)


def kernels_of(
    kernels: Sequence[CompiledKernel], ptx: Sequence[str], layout: Layout, target: Target
) -> list[Kernel]:
    """Those of ptxas's kernels that the PTX declares."""
    bounds = launch_bounds(ptx)
    return [
        Kernel(
            symbol=kernel.symbol,
            registers=kernel.registers,
            shared_bytes=kernel.shared_bytes,
            local_bytes=kernel.local_bytes,
            max_threads=min(bounds.get(kernel.symbol, 1024), target.max_threads_per_block),
            parameters=layout[kernel.symbol],
        )
        for kernel in kernels
        if kernel.symbol in layout
    ]


def first_impossible(plan: LaunchPlan, kernels: Mapping[str, Kernel], target: Target) -> str:
    """A clause about the first launch that no device would accept; empty when there is none."""
    for launch in plan.launches:
        kernel = kernels.get(launch.kernel)
        why = "there is no such kernel" if kernel is None else _impossible(launch, kernel, target)
        if why:
            return f"a launch of {launch.kernel}: {why}"
    return ""


def _impossible(launch: Launch, kernel: Kernel, target: Target) -> str:
    threads = math.prod(launch.block)
    if launch.module != 0:
        return "there is no such module"
    if len(launch.parameters) // 2 != kernel.parameter_bytes:
        return f"{len(launch.parameters) // 2} parameter bytes instead of {kernel.parameter_bytes}"
    if threads > kernel.max_threads:
        return f"{threads} threads a block; at most {kernel.max_threads}"
    if -(-threads // target.warp_size) > _warps_by_registers(kernel, target):
        return f"{kernel.registers} registers a thread for {threads} threads a block"
    if launch.shared_bytes + kernel.shared_bytes > target.max_shared_bytes_per_block:
        return f"{launch.shared_bytes} dynamic shared bytes"
    return ""


def _warps_by_registers(kernel: Kernel, target: Target) -> int:
    unit, granularity = target.register_allocation_unit, target.warp_allocation_granularity
    per_warp = -(-max(kernel.registers, 1) * target.warp_size // unit) * unit
    return target.registers_per_sm // per_warp // granularity * granularity


def launch_bounds(modules: Sequence[str]) -> dict[str, int]:
    """Mangled kernel name -> threads a block may have, for kernels that say so (`__launch_bounds__`).

    Comments and strings of inline assembly may look like another header of a kernel: the least counts.
    """
    bounds: dict[str, int] = {}
    for ptx in modules:
        for head in re.finditer(r"\.entry\s+([\w$]+)[^{]*", ptx):
            if sizes := re.search(r"\.maxntid\s+([\d\s,]+)", head[0]):
                threads = math.prod(int(size) for size in re.findall(r"\d+", sizes[1]))
                bounds[head[1]] = min(threads, bounds.get(head[1], threads))
    return bounds
