"""What is known of each GPU architecture: limits that decide occupancy, and speeds that decide rooflines.

Limits are per compute capability (CUDA C++ Programming Guide, "Technical Specifications per Compute
Capability"; allocation granularities as in NVIDIA's occupancy calculator). SM count, caches, clock, bandwidth
and peaks are those of one product of that architecture, named in `product`, at its boost clock, from
NVIDIA's data sheets. Peaks are of the ordinary (CUDA core) pipes, fused multiply-add counted as two.
"""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True)
class Target:
    arch: str  # "sm_90"
    product: str  # whose SM count, memory and peaks these are
    compute_capability: tuple[int, int]
    sm_count: int
    max_threads_per_sm: int
    max_warps_per_sm: int
    max_blocks_per_sm: int
    shared_bytes_per_sm: int
    max_shared_bytes_per_block: int  # with the opt-in attribute
    l2_bytes: int
    memory_bytes: int
    clock_khz: int  # boost
    dram_bandwidth: float  # bytes a second
    peak_fp16: float  # FLOP a second
    peak_fp32: float
    peak_fp64: float
    registers_per_sm: int = 65536
    max_registers_per_block: int = 65536
    max_registers_per_thread: int = 255
    register_allocation_unit: int = 256  # registers, per warp
    warp_allocation_granularity: int = 4  # warps per SM are handed out in multiples (one per sub-partition)
    shared_allocation_unit: int = 128  # bytes, per block
    reserved_shared_bytes_per_block: int = 1024  # the system's own, sm_80 and later
    default_shared_bytes_per_block: int = 48 * KIB  # without the opt-in attribute
    max_threads_per_block: int = 1024
    warp_size: int = 32
    constant_bytes: int = 64 * KIB


TARGETS: dict[str, Target] = {
    target.arch: target
    for target in (
        Target(
            arch="sm_80",
            product="A100 80GB SXM",
            compute_capability=(8, 0),
            sm_count=108,
            max_threads_per_sm=2048,
            max_warps_per_sm=64,
            max_blocks_per_sm=32,
            shared_bytes_per_sm=164 * KIB,
            max_shared_bytes_per_block=163 * KIB,
            l2_bytes=40 * MIB,
            memory_bytes=80 * GIB,
            clock_khz=1_410_000,
            dram_bandwidth=2.039e12,
            peak_fp16=78.0e12,
            peak_fp32=19.5e12,
            peak_fp64=9.7e12,
        ),
        Target(
            arch="sm_86",
            product="GeForce RTX 3090",
            compute_capability=(8, 6),
            sm_count=82,
            max_threads_per_sm=1536,
            max_warps_per_sm=48,
            max_blocks_per_sm=16,
            shared_bytes_per_sm=100 * KIB,
            max_shared_bytes_per_block=99 * KIB,
            l2_bytes=6 * MIB,
            memory_bytes=24 * GIB,
            clock_khz=1_695_000,
            dram_bandwidth=0.936e12,
            peak_fp16=35.6e12,
            peak_fp32=35.6e12,
            peak_fp64=0.556e12,
        ),
        Target(
            arch="sm_89",
            product="GeForce RTX 4090",
            compute_capability=(8, 9),
            sm_count=128,
            max_threads_per_sm=1536,
            max_warps_per_sm=48,
            max_blocks_per_sm=24,
            shared_bytes_per_sm=100 * KIB,
            max_shared_bytes_per_block=99 * KIB,
            l2_bytes=72 * MIB,
            memory_bytes=24 * GIB,
            clock_khz=2_520_000,
            dram_bandwidth=1.008e12,
            peak_fp16=82.6e12,
            peak_fp32=82.6e12,
            peak_fp64=1.29e12,
        ),
        Target(
            arch="sm_90",
            product="H200 SXM",
            compute_capability=(9, 0),
            sm_count=132,
            max_threads_per_sm=2048,
            max_warps_per_sm=64,
            max_blocks_per_sm=32,
            shared_bytes_per_sm=228 * KIB,
            max_shared_bytes_per_block=227 * KIB,
            l2_bytes=60 * MIB,  # as the driver reports it
            memory_bytes=150_109_880_320,
            clock_khz=1_980_000,
            dram_bandwidth=4.8e12,
            peak_fp16=133.8e12,
            peak_fp32=66.9e12,
            peak_fp64=33.5e12,
        ),
        Target(
            arch="sm_100",
            product="B200",
            compute_capability=(10, 0),
            sm_count=148,
            max_threads_per_sm=2048,
            max_warps_per_sm=64,
            max_blocks_per_sm=32,
            shared_bytes_per_sm=228 * KIB,
            max_shared_bytes_per_block=227 * KIB,
            l2_bytes=126 * MIB,
            memory_bytes=180 * 10**9,
            clock_khz=1_965_000,
            dram_bandwidth=8.0e12,
            peak_fp16=148.9e12,
            peak_fp32=74.4e12,
            peak_fp64=37.2e12,
        ),
        Target(
            arch="sm_120",
            product="GeForce RTX 5090",
            compute_capability=(12, 0),
            sm_count=170,
            max_threads_per_sm=1536,
            max_warps_per_sm=48,
            max_blocks_per_sm=24,
            shared_bytes_per_sm=100 * KIB,
            max_shared_bytes_per_block=99 * KIB,
            l2_bytes=96 * MIB,
            memory_bytes=32 * GIB,
            clock_khz=2_407_000,
            dram_bandwidth=1.792e12,
            peak_fp16=104.8e12,
            peak_fp32=104.8e12,
            peak_fp64=1.64e12,
        ),
    )
}

DEFAULT_TARGET = "sm_90"
