"""Textbook kernels through nvcc and the emulator: exact counts, and scores in the order of the hardware."""

from __future__ import annotations

from itertools import pairwise

import pytest

pytest.importorskip("sandbox.emulator.client", reason="the emulator is not there")

from textbook import TARGET, VARIANTS, line_of, metrics_of_kernel, replayed

pytestmark = pytest.mark.usefixtures("jail")

WARPS = 512  # of the saxpy, transpose and matmul launches


def note(kernel: str, family: str) -> str:
    metrics = replayed(kernel)
    return metrics.notes[list(metrics.families).index(family)]


@pytest.mark.parametrize(
    ("kernel", "load_requests", "load_sectors", "store_requests", "store_sectors"),
    [
        ("saxpy_coalesced", 2 * WARPS, 8 * WARPS, WARPS, 4 * WARPS),
        ("saxpy_strided", 2 * WARPS, 64 * WARPS, WARPS, 32 * WARPS),
        ("saxpy_float4", WARPS // 2, 8 * WARPS, WARPS // 4, 4 * WARPS),
        ("transpose_naive", 4 * WARPS, 16 * WARPS, 4 * WARPS, 128 * WARPS),
        ("transpose_padded", 4 * WARPS, 16 * WARPS, 4 * WARPS, 16 * WARPS),
        ("matmul_naive", 2 * 128 * WARPS, 4 * 128 * WARPS, WARPS, 4 * WARPS),
        ("matmul_row_per_thread", 2 * 128 * WARPS, 33 * 128 * WARPS, WARPS, 32 * WARPS),
        ("matmul_tiled", 2 * 8 * WARPS, 8 * 8 * WARPS, WARPS, 4 * WARPS),
    ],
)
def test_global_traffic(
    kernel: str, load_requests: int, load_sectors: int, store_requests: int, store_sectors: int
) -> None:
    metrics = metrics_of_kernel(kernel)
    assert (metrics.global_load_requests, metrics.global_load_sectors) == (load_requests, load_sectors)
    assert (metrics.global_store_requests, metrics.global_store_sectors) == (store_requests, store_sectors)


@pytest.mark.parametrize(
    ("kernel", "load_conflicts", "store_conflicts"),
    [
        ("transpose_tile", 31 * 4 * WARPS, 0),
        ("transpose_padded", 0, 0),
        ("matmul_tiled", 0, 0),
        ("matmul_tiled_conflicts", 15 * 128 * WARPS, 15 * 8 * WARPS),
    ],
)
def test_bank_conflicts(kernel: str, load_conflicts: int, store_conflicts: int) -> None:
    metrics = metrics_of_kernel(kernel)
    assert metrics.shared_load_bank_conflicts == load_conflicts
    assert metrics.shared_store_bank_conflicts == store_conflicts


@pytest.mark.parametrize(
    ("kernel", "flop"),
    [("saxpy_coalesced", 2 * 32 * WARPS), ("matmul_naive", 2 * 128**3), ("transpose_tile", 0)],
)
def test_flop(kernel: str, flop: int) -> None:
    assert metrics_of_kernel(kernel).flop.fp32 == flop
    assert metrics_of_kernel(kernel).flop.fp64 == 0


@pytest.mark.parametrize(
    "kernel", ["matmul_naive", "matmul_tiled", "matmul_registers", "matmul_row_per_thread"]
)
def test_compulsory_traffic_is_the_three_matrices(kernel: str) -> None:
    assert metrics_of_kernel(kernel).dram_bytes == 3 * 128 * 128 * 4


def test_barriers() -> None:
    needed, useless = metrics_of_kernel("barriers_needed"), metrics_of_kernel("barriers_useless")
    assert (needed.barriers_per_thread, needed.useless_barriers) == (1, 0)
    assert (useless.barriers_per_thread, useless.useless_barriers) == (4, 3 * 64)
    assert metrics_of_kernel("matmul_tiled").barriers_per_thread == 16


def test_atomics() -> None:
    one, private = metrics_of_kernel("histogram_one_address"), metrics_of_kernel("histogram_private")
    assert one.atomics == 65536 // 32
    assert one.atomic_lanes_per_address == 32
    assert private.atomics == 65536 // 32 + 16 * 8


def test_divergence() -> None:
    assert metrics_of_kernel("branches_by_warp").active_threads_per_warp == 32
    assert metrics_of_kernel("branches_by_thread").active_threads_per_warp < 24


@pytest.mark.parametrize(
    ("kernels", "by"),
    [
        (("saxpy_strided", "saxpy_coalesced"), 20),
        (("transpose_naive", "transpose_tile", "transpose_padded"), 3),
        (("matmul_row_per_thread", "matmul_naive", "matmul_tiled", "matmul_registers"), 3),
        (("matmul_tiled_conflicts", "matmul_tiled"), 5),
        (("softmax_thread_per_row", "softmax_warp_per_row"), 20),
        (("histogram_one_address", "histogram_global", "histogram_private"), 1),
        (("branches_by_thread", "branches_by_warp"), 0.5),
        (("barriers_useless", "barriers_needed"), 1),
    ],
)
def test_order(kernels: tuple[str, ...], by: float) -> None:
    scores = [replayed(kernel).structural_score for kernel in kernels]
    assert all(better - worse >= by for worse, better in pairwise(scores)), scores


def test_wide_loads_are_no_worse() -> None:
    assert replayed("saxpy_float4").structural_score >= replayed("saxpy_coalesced").structural_score - 0.05


def test_notes_name_the_line() -> None:
    strided = line_of("saxpy_strided", "y[i] =")
    assert f"Line {strided} loads 32 sectors per request (4 would do)" in note("saxpy_strided", "coalescing")
    assert "reads shared memory in 32 wavefronts per request" in note("transpose_tile", "shared_memory")
    hit = line_of("histogram_one_address", "atomicAdd")
    assert f"Line {hit} executes 2,048 atomic requests with 32 lanes per address" in note(
        "histogram_one_address", "synchronisation"
    )
    branch = line_of("branches_by_thread", "for (")
    assert f"line {branch}" in note("branches_by_thread", "divergence")


def test_occupancy_comes_from_ptxas() -> None:
    kernel = metrics_of_kernel("matmul_registers")
    assert kernel.occupancy_limiter == "registers"
    assert kernel.theoretical_occupancy < 1
    assert TARGET.arch == "sm_90"


@pytest.mark.parametrize("kernel", list(VARIANTS))
def test_every_number_is_in_range(kernel: str) -> None:
    metrics = replayed(kernel)
    assert 0 <= metrics.structural_score <= 100
    assert all(0 <= score <= 1 for score in metrics.families.values())
    assert all(text.endswith(".") for text in metrics.notes)
