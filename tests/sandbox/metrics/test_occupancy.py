"""The occupancy calculation against NVIDIA's own header, and the words around it."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path

import pytest
from handmade_traces import compiled, saxpy

from sandbox.metrics import measure
from sandbox.metrics.occupancy import calculate, next_step, score
from sandbox.targets import TARGETS

HEADERS = [
    Path(prefix) / "include" / "cuda_occupancy.h"
    for prefix in ("/usr/local/cuda", "/usr/lib/cuda", "/opt/cuda")
]
HEADER = next((path for path in HEADERS if path.exists()), None)

PROGRAM = r"""
#include <stdio.h>
#include "cuda_occupancy.h"
int main() {
    int major, minor, threads_sm, shared_sm, shared_block, threads, registers, shared;
    while (scanf("%d %d %d %d %d %d %d %d", &major, &minor, &threads_sm, &shared_sm, &shared_block, &threads,
                 &registers, &shared) == 8) {
        cudaOccDeviceProp p;
        p.computeMajor = major; p.computeMinor = minor;
        p.maxThreadsPerBlock = 1024; p.maxThreadsPerMultiprocessor = threads_sm;
        p.regsPerBlock = 65536; p.regsPerMultiprocessor = 65536; p.warpSize = 32;
        p.sharedMemPerBlock = 49152; p.sharedMemPerMultiprocessor = shared_sm; p.numSms = 1;
        p.sharedMemPerBlockOptin = shared_block; p.reservedSharedMemPerBlock = 1024;
        cudaOccFuncAttributes a;
        a.maxThreadsPerBlock = 1024; a.numRegs = registers; a.sharedSizeBytes = 0;
        a.partitionedGCConfig = PARTITIONED_GC_OFF; a.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        a.maxDynamicSharedSizeBytes = shared_block;
        cudaOccDeviceState s;
        s.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
        cudaOccResult result;
        cudaOccError status = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &p, &a, &s, threads, shared);
        printf("%d\n", status == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -1);
    }
}
"""


@pytest.mark.skipif(
    HEADER is None or shutil.which("g++") is None, reason="needs the CUDA toolkit's headers and g++"
)
def test_equals_nvidias_header(tmp_path: Path) -> None:
    assert HEADER is not None
    (tmp_path / "occupancy.cpp").write_text(PROGRAM)
    program = tmp_path / "occupancy"
    subprocess.run(
        ["g++", "-w", "-I", str(HEADER.parent), "-o", str(program), str(tmp_path / "occupancy.cpp")],
        check=True,
    )
    cases = list(
        itertools.product(
            TARGETS.values(),
            (1, 32, 33, 64, 96, 128, 192, 256, 320, 512, 640, 768, 1024),
            (16, 24, 32, 33, 40, 48, 63, 64, 65, 72, 96, 128, 168, 255),
            (0, 1, 1024, 4224, 12_000, 33_000, 49_152, 65_536, 100_000, 101_376, 166_912, 232_448),
        )
    )
    rows = [
        f"{target.compute_capability[0]} {target.compute_capability[1]} {target.max_threads_per_sm} "
        f"{target.shared_bytes_per_sm} {target.max_shared_bytes_per_block} {threads} {registers} {shared}"
        for target, threads, registers, shared in cases
    ]
    out = subprocess.run([str(program)], input="\n".join(rows), capture_output=True, text=True, check=True)
    theirs = [int(row) for row in out.stdout.split()]
    ours = [calculate(*case).blocks_per_sm for case in cases]
    different = [
        (case[0].arch, *case[1:], a, b) for case, a, b in zip(cases, ours, theirs, strict=True) if a != b
    ]
    assert not different, different[:10]


SM_90 = TARGETS["sm_90"]


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "blocks", "limiter"),
    [
        (256, 32, 0, 8, "warps"),
        (256, 33, 0, 6, "registers"),
        (256, 255, 0, 1, "registers"),
        (32, 16, 0, 32, "blocks"),
        (256, 32, 48 * 1024, 4, "shared_memory"),
        (256, 32, 232_448, 1, "shared_memory"),
        (256, 32, 232_449, 0, "shared_memory"),
        (768, 32, 0, 2, "block_size"),
        (1024, 255, 0, 0, "registers"),
    ],
)
def test_limiters_on_hopper(threads: int, registers: int, shared: int, blocks: int, limiter: str) -> None:
    result = calculate(SM_90, threads, registers, shared)
    assert (result.blocks_per_sm, result.limiter) == (blocks, limiter)


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "step"),
    [
        (256, 32, 0, ""),
        (256, 33, 0, "32 registers per thread would reach 100%"),
        (256, 168, 0, "128 registers per thread would reach 25%"),
        (32, 16, 0, "blocks of 64 threads would reach 100%"),
        (256, 32, 48 * 1024, "45,568 bytes of shared memory per block would reach 62%"),
        (768, 32, 0, "blocks of 512 threads would reach 100%"),
    ],
)
def test_next_step(threads: int, registers: int, shared: int, step: str) -> None:
    assert next_step(SM_90, threads, registers, shared) == step


def test_next_step_is_true() -> None:
    """Taking the step reaches what it says, and one unit less would not."""
    assert calculate(SM_90, 256, 32, 45_568).theoretical == pytest.approx(0.625)
    assert calculate(SM_90, 256, 32, 45_569).theoretical == pytest.approx(0.5)
    assert calculate(SM_90, 256, 129, 0).theoretical == calculate(SM_90, 256, 168, 0).theoretical


def test_score_saturates() -> None:
    points = [score(share / 16) for share in range(17)]
    assert points[0] == 0
    assert points[-1] == 1
    assert all(a < b for a, b in itertools.pairwise(points))
    assert score(0.5) > 0.85


def test_registers_lower_the_score_and_are_named() -> None:
    light = measure([saxpy()], [compiled(32)], SM_90, {})
    heavy = measure([saxpy()], [compiled(128)], SM_90, {})
    assert heavy.families["occupancy"] < light.families["occupancy"]
    assert heavy.kernels[0].theoretical_occupancy == pytest.approx(0.25)
    assert heavy.kernels[0].occupancy_limiter == "registers"
    note = heavy.notes[list(heavy.families).index("occupancy")]
    assert "128 registers per thread allow 2 blocks of 256; 80 registers per thread would reach 38%" in note


def test_unknown_registers_do_not_limit_and_are_said_so() -> None:
    metrics = measure([saxpy()], [], SM_90, {})
    assert metrics.kernels[0].theoretical_occupancy == 1
    assert "registers unknown" in metrics.notes[list(metrics.families).index("occupancy")]


@pytest.mark.parametrize(
    ("blocks", "waves", "idle"),
    [(1, 1 / 1056, 1055 / 1056), (1056, 1.0, 0.0), (1320, 1.25, 0.75), (2112, 2.0, 0.0), (2904, 2.75, 0.25)],
)
def test_the_last_wave_is_idle_where_blocks_are_missing(blocks: int, waves: float, idle: float) -> None:
    """An H200 holds 8 blocks of 256 threads on each of 132 SMs: 1,056 at once."""
    [kernel] = measure([saxpy(warps=8 * blocks)], [compiled(32)], SM_90, {}).kernels
    assert kernel.waves == pytest.approx(waves)
    assert kernel.tail_fraction == pytest.approx(idle)
