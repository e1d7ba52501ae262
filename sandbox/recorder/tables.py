"""What our CUDA runtime is told of the device and of the kernels: lines of words separated by tabs.

`sandbox/cudart/runtime.cpp` reads them.
"""

from __future__ import annotations

from sandbox.recorder.launchable import Kernel
from sandbox.targets import Target

_LIMITS = (
    "sm_count",
    "max_threads_per_sm",
    "max_warps_per_sm",
    "max_blocks_per_sm",
    "shared_bytes_per_sm",
    "max_shared_bytes_per_block",
    "default_shared_bytes_per_block",
    "reserved_shared_bytes_per_block",
    "shared_allocation_unit",
    "l2_bytes",
    "memory_bytes",
    "clock_khz",
    "registers_per_sm",
    "max_registers_per_block",
    "register_allocation_unit",
    "warp_allocation_granularity",
    "max_threads_per_block",
    "warp_size",
    "constant_bytes",
)


def device_lines(target: Target) -> str:
    lines = [f"product\t{target.product}"]
    lines += [f"limit\t{name}\t{getattr(target, name)}" for name in _LIMITS]
    major, minor = target.compute_capability
    lines += [f"limit\tmajor\t{major}", f"limit\tminor\t{minor}"]
    return "\n".join(lines) + "\n"


def kernel_line(kernel: Kernel) -> str:
    pieces = ",".join(f"{offset}:{size}" for offset, size in kernel.parameters)
    numbers = (kernel.registers, kernel.shared_bytes, kernel.local_bytes, kernel.max_threads)
    return "\t".join(["kernel", kernel.symbol, *map(str, numbers), pieces]) + "\n"
