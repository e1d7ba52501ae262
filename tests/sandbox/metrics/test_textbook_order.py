"""Textbook variants by hand: scores must move the way a GPU performance engineer expects."""

from __future__ import annotations

from itertools import pairwise

import pytest
from handmade_traces import (
    compiled,
    histogram,
    launch,
    line,
    matrix_product,
    saxpy,
    softmax,
    streaming_loads,
    streaming_stores,
    strided_saxpy,
    transpose,
)

from sandbox.emulator.trace import LaunchTrace
from sandbox.metrics import WEIGHTS, measure
from sandbox.metrics.finding import soft
from sandbox.targets import TARGETS
from sandbox.types import Metrics

TARGET = TARGETS["sm_90"]


def metrics_of(*traces: LaunchTrace, registers: int = 32, spilled: int = 0, **more: int) -> Metrics:
    return measure(traces, [compiled(registers, spilled)], TARGET, {"n": 1}, **more)


def score(*traces: LaunchTrace, **more: int) -> float:
    return metrics_of(*traces, **more).structural_score


def note(metrics: Metrics, family: str) -> str:
    return metrics.notes[list(metrics.families).index(family)]


def rising(scores: list[float], by: float = 1.0) -> bool:
    return all(b - a >= by for a, b in pairwise(scores))


def test_weights_add_up_to_one() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1)


def test_a_perfect_streaming_kernel_is_near_100() -> None:
    assert score(saxpy()) > 99


def test_coalesced_beats_strided() -> None:
    good, bad = metrics_of(saxpy()), metrics_of(strided_saxpy())
    assert good.structural_score - bad.structural_score > 30
    assert good.families["coalescing"] == 1
    assert good.families["coalescing"] > 4 * bad.families["coalescing"]
    assert "Line 4 loads 32 sectors per request (4 would do)" in note(bad, "coalescing")
    assert bad.kernels[0].global_load_efficiency == pytest.approx(0.125)


def test_transpose() -> None:
    assert rising([score(transpose(kind)) for kind in ("naive", "tile", "padded")], by=5)
    tile = metrics_of(transpose("tile"))
    assert "Line 7 reads shared memory in 32 wavefronts per request (1 would do)" in note(
        tile, "shared_memory"
    )
    assert tile.kernels[0].shared_load_bank_conflicts == 31 * 512


def test_matrix_product() -> None:
    kinds = ("row_per_thread", "naive", "tiled")
    scores = [score(matrix_product(kind)) for kind in kinds]
    scores.append(score(matrix_product("registers"), registers=64))
    assert rising(scores, by=5)
    families = [metrics_of(matrix_product(kind)).families["intensity"] for kind in (*kinds, "registers")]
    assert families == sorted(families)
    assert families[2] > 1.3 * families[1]


def test_tiling_shows_as_rereads() -> None:
    naive, tiled = (metrics_of(matrix_product(kind)).kernels[0] for kind in ("naive", "tiled"))
    assert naive.dram_bytes == tiled.dram_bytes
    assert naive.reread_factor is not None
    assert tiled.reread_factor is not None
    assert naive.reread_factor > 5 * tiled.reread_factor


def test_softmax() -> None:
    thread, warp = metrics_of(softmax("thread_per_row")), metrics_of(softmax("warp_per_row"))
    assert warp.structural_score - thread.structural_score > 30
    assert warp.families["balance"] > 2 * thread.families["balance"]
    assert "only 8 warps of 15,360 instructions" in note(thread, "balance")


def test_histogram() -> None:
    assert rising([score(histogram(kind)) for kind in ("one_address", "global", "private")], by=2)
    assert "32 lanes per address: they queue up" in note(
        metrics_of(histogram("one_address")), "synchronisation"
    )


def divergent(lanes: int) -> LaunchTrace:
    body = line(6, 20, branches=1, divergent_branches=int(lanes < 32), active_lanes=20 * lanes)
    return launch(
        512,
        [line(4, 8, **streaming_loads(1), **streaming_stores(1)), body],
        load_sectors=2048,
        store_sectors=2048,
    )


def test_divergence() -> None:
    assert rising([score(divergent(lanes)) for lanes in (1, 4, 16, 32)], by=0.5)
    said = note(metrics_of(divergent(4)), "divergence")
    assert "12 of 32 threads are active" in said
    assert "line 6 parts its warp in 100% of its 512 executions" in said


def with_barriers(count: int, useless: int) -> LaunchTrace:
    lines = [line(4, 40, **streaming_loads(1), **streaming_stores(1)), line(5, count, barriers=count)]
    return launch(
        512,
        lines,
        load_sectors=2048,
        store_sectors=2048,
        barriers=64 * count,
        useless_barriers=64 * useless,
    )


def test_useless_barriers() -> None:
    assert rising([score(with_barriers(4, useless)) for useless in (4, 2, 0)], by=1)
    assert rising([score(with_barriers(count, 0)) for count in (16, 4, 0)], by=0.3)
    assert "100% of the 256 executed order nothing" in note(
        metrics_of(with_barriers(4, 4)), "synchronisation"
    )


def test_spread_over_warps() -> None:
    def uneven(spread: float) -> LaunchTrace:
        body = line(4, 2000, flop_fp32=64_000, **streaming_loads(20))
        return launch(64, [body], load_sectors=5120, spread=spread)

    assert rising([score(uneven(spread)) for spread in (2.0, 1.0, 0.5, 0.0)], by=1)


def test_small_grids_are_not_blamed_when_the_work_is_small() -> None:
    small = metrics_of(saxpy(warps=8))
    assert small.kernels[0].waves < 0.01
    assert small.families["balance"] == 1


def test_one_block_for_much_work_is_blamed() -> None:
    body = [line(4, 100_000, **streaming_loads(10_000))]
    alone = metrics_of(launch(8, body, load_sectors=320_000))
    assert alone.families["balance"] < 0.1


def test_launches_copies_and_spills_cost() -> None:
    assert rising([score(*[saxpy()] * count) for count in (100, 10, 2, 1)], by=0.3)
    assert score(saxpy(), copies=4) < score(saxpy())
    assert rising([score(saxpy(), spilled=spilled) for spilled in (256, 64, 8, 0)], by=0.3)
    assert "10 launches" in note(metrics_of(*[saxpy()] * 10), "overheads")


def test_intermediate_arrays_are_waste_where_the_task_is_known() -> None:
    """Two launches that pass an array through memory, against one that does not: 512 warps of 128 bytes."""
    one = launch(
        512, [line(4, 12, **streaming_loads(1), **streaming_stores(1))], load_sectors=2048, store_sectors=2048
    )
    task_bytes = 2 * 512 * 128
    assert metrics_of(one, task_bytes=task_bytes).families["intensity"] > 0.98
    assert metrics_of(one, one, task_bytes=task_bytes).families["intensity"] < 0.7
    assert metrics_of(one, one).families["intensity"] > 0.98


def test_equal_launches_become_one_entry() -> None:
    metrics = metrics_of(*[saxpy()] * 10)
    assert [kernel.launches for kernel in metrics.kernels] == [10]
    assert metrics.kernels[0].global_load_requests == 10 * metrics_of(saxpy()).kernels[0].global_load_requests
    assert metrics.kernels[0].waves == metrics_of(saxpy()).kernels[0].waves


def test_families_that_do_not_apply_are_absent_and_said_so() -> None:
    metrics = metrics_of(saxpy())
    assert set(WEIGHTS) - set(metrics.families) == {"shared_memory", "synchronisation"}
    assert metrics.notes[-2:] == ["No shared memory is accessed.", "No barriers and no atomics."]
    assert len(metrics.notes) == len(WEIGHTS)


def test_a_token_access_earns_no_credit() -> None:
    """One conflict-free shared access and one barrier must not lift a bad kernel's score noticeably."""
    bad = strided_saxpy()
    token = line(8, 2, barriers=1, shared_load_requests=1, shared_load_wavefronts=1, shared_load_ideal=1)
    padded = launch(
        512,
        [*(each for each in _per_warp(bad, 512)), token],
        load_sectors=4096,
        store_sectors=2048,
        barriers=64,
    )
    assert score(padded) - score(bad) < 2


def _per_warp(trace: LaunchTrace, warps: int) -> list:
    return [
        each.model_copy(
            update={k: v // warps for k, v in each.model_dump().items() if isinstance(v, int) and k != "line"}
        )
        for each in trace.lines
    ]


def test_no_launch_at_all() -> None:
    metrics = metrics_of()
    assert metrics.structural_score == 0
    assert metrics.families == {}
    assert len(metrics.notes) == 1 + len(WEIGHTS)


def test_an_empty_launch() -> None:
    assert 0 <= score(launch(1, [], block=32)) <= 100


def test_roofline_names_the_roof() -> None:
    memory, compute = metrics_of(saxpy()).kernels[0], metrics_of(matrix_product("tiled", n=512)).kernels[0]
    assert (memory.roof, compute.roof) == ("dram_bandwidth", "fp32")
    assert memory.arithmetic_intensity == pytest.approx(2 / 12)
    assert compute.arithmetic_intensity == pytest.approx(2 * 512**3 / (3 * 512 * 512 * 4))
    assert memory.ridge_intensity == pytest.approx(66.9 / 4.8)
    assert compute.attainable_share_of_peak == 1


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_order_holds_on_every_target(target: object) -> None:
    def on(trace: LaunchTrace) -> float:
        return measure([trace], [compiled()], target, {}).structural_score  # type: ignore[arg-type]

    assert on(saxpy()) > on(strided_saxpy())
    assert on(transpose("naive")) < on(transpose("tile")) < on(transpose("padded"))
    assert on(matrix_product("naive")) < on(matrix_product("tiled"))
    assert on(softmax("thread_per_row")) < on(softmax("warp_per_row"))


def test_soft_is_smooth_and_bounded() -> None:
    values = [soft(step / 1000) for step in range(1001)]
    assert values[0] == 0
    assert values[-1] == 1
    assert all(0 < b - a < 0.003 for a, b in pairwise(values))
