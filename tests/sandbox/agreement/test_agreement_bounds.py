"""What counts as agreement: verdicts on numbers made by hand, and the page they end on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sandbox.agreement import bounds, report
from sandbox.agreement.bounds import METRICS, OPCODES, THREAD_OPCODES, Emulated, Row
from sandbox.agreement.case import Array, Case, In, Out, case, floats
from sandbox.agreement.profiler import Counters
from sandbox.agreement.result import Result
from sandbox.emulator.trace import LaunchTrace, LineCounts, Spread
from sandbox.targets import TARGETS
from sandbox.types import CompiledKernel

COPY = case("copy", 4, 128, In("x", floats(512)), Out("y", 512))
CHAIN = replace(COPY, chain=16)
LOADS, SECTORS = (f"l1tex__t_{what}_pipe_lsu_mem_global_op_ld.sum" for what in ("requests", "sectors"))


def emulated(which: Case = COPY, **counts: int) -> Emulated:
    spread = Spread(count=16, mean=100.0, minimum=90, maximum=110, standard_deviation=5.0)
    line = LineCounts(line=1, **{"instructions": 1600, "active_lanes": 1600 * 32, **counts})
    trace = LaunchTrace(
        kernel=which.kernel,
        grid=which.grid,
        block=which.block,
        static_shared_bytes=0,
        dynamic_shared_bytes=0,
        threads=512,
        barriers_executed=0,
        useless_barriers=0,
        distinct_load_sectors=0,
        distinct_store_sectors=0,
        warps=spread,
        blocks=spread,
        lines=[line],
    )
    resources = CompiledKernel(
        name="copy",
        symbol="copy",
        registers=16,
        shared_bytes=0,
        local_bytes=0,
        spill_store_bytes=0,
        spill_load_bytes=0,
    )
    return Emulated(which, trace, resources, TARGETS["sm_90"])


def counters(instances: dict[str, dict[str, float]] | None = None, **values: float) -> Counters:
    """A card that agrees with `emulated()`, but for `values`."""
    agreeing = dict.fromkeys((name for name in METRICS if name not in (OPCODES, THREAD_OPCODES)), 0.0)
    agreeing |= {
        "smsp__thread_inst_executed_per_inst_executed.ratio": 32.0,
        "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio": 32.0,
        "sm__maximum_warps_per_active_cycle_pct": 100.0,
        "smsp__warps_launched.sum": 16,
        "smsp__inst_executed.max": 110,
        "smsp__inst_executed.sum": 1600,
    }
    return Counters("copy", {**agreeing, **values}, instances or {OPCODES: {"LDG": 4}})


def verdict(rows: list[Row], what: str) -> str:
    [row] = [row for row in rows if row.what == what]
    return row.verdict


def test_a_card_that_counts_the_same_agrees() -> None:
    rows = bounds.counts(emulated(), counters())
    assert {row.verdict for row in rows} == {"ok", "told"}
    assert {row.what for row in rows} == {
        "active lanes per instruction",
        "lanes not predicated off",
        "theoretical occupancy, %",
        "warps",
        "busiest warp over the average",
    }


@pytest.mark.parametrize(
    ("ours", "theirs", "wanted"),
    [(1000, 1000, "ok"), (1000, 1010, "ok"), (1000, 1011, "over"), (0, 1, "over"), (1, 0, "over")],
)
def test_requests_and_sectors_within_one_in_a_hundred(ours: int, theirs: int, wanted: str) -> None:
    rows = bounds.counts(emulated(global_load_requests=ours), counters(**{LOADS: theirs}))
    assert verdict(rows, "global load requests") == wanted
    rows = bounds.counts(emulated(global_load_sectors=ours), counters(**{SECTORS: theirs}))
    assert verdict(rows, "global load sectors") == wanted


@pytest.mark.parametrize(("theirs", "wanted"), [(92, "ok"), (90, "ok"), (87, "over"), (0, "over")])
def test_conflicts_are_wavefronts_beyond_the_ideal(theirs: int, wanted: str) -> None:
    name = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
    rows = bounds.counts(
        emulated(shared_load_wavefronts=100, shared_load_ideal=10), counters(**{name: theirs})
    )
    assert verdict(rows, "shared load conflicts") == wanted


@pytest.mark.parametrize(("theirs", "wanted"), [(30.5, "ok"), (30.4, "over"), (33.6, "ok")])
def test_active_lanes_within_five_in_a_hundred(theirs: float, wanted: str) -> None:
    rows = bounds.counts(
        emulated(), counters(**{"smsp__thread_inst_executed_per_inst_executed.ratio": theirs})
    )
    assert verdict(rows, "active lanes per instruction") == wanted


def test_theoretical_occupancy_is_exact() -> None:
    name = "sm__maximum_warps_per_active_cycle_pct"
    assert verdict(bounds.counts(emulated(), counters(**{name: 98.44})), "theoretical occupancy, %") == "over"


def test_flop_weigh_a_fused_one_twice_and_are_compared_by_pipe() -> None:
    executed = {
        "sm__sass_thread_inst_executed_op_fadd_pred_on.sum": 10,
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum": 20,
        "sm__sass_thread_inst_executed_op_dmul_pred_on.sum": 5,
        "sm__sass_thread_inst_executed_op_hfma_pred_on.sum": 7,
        "sm__ops_path_tensor_src_fp16_dst_fp32.sum": 4096,
    }

    def flop(of: Emulated) -> dict[str, tuple[float | None, float | None, str]]:
        rows = bounds.counts(of, counters(**executed))
        return {r.what: (r.emulator, r.card, r.verdict) for r in rows if r.what.startswith("FLOP")}

    assert flop(emulated(flop_fp32=50, flop_fp64=5)) == {"FLOP": (55, 55, "ok")}
    halves = emulated(flop_fp32=50, flop_fp64=5, flop_fp16=14)
    assert flop(halves) == {"FLOP": (55, 55, "ok"), "FLOP, fp16": (14, 14, "ok")}
    tensor = replace(COPY, numbers="tensor")
    assert flop(emulated(tensor, flop_fp16=4000)) == {"FLOP, tensor cores": (4000, 4096, "over")}
    divides = replace(COPY, expands="division")
    rows = bounds.counts(emulated(divides, flop_fp32=50), counters(**executed))
    assert "FLOP" not in {row.what for row in rows}


def test_what_expands_is_shown_beside_what_the_machine_executes() -> None:
    divides = emulated(replace(COPY, expands="division"), flop_fp32=512)
    told = counters({THREAD_OPCODES: {"MUFU": 512, "FFMA": 2560, "IADD3": 99}})
    found = bounds.expansion(divides, told)
    assert found is not None
    assert (found.flop, found.instructions) == (512, {"MUFU": 512, "FFMA": 2560})
    assert bounds.expansion(emulated(), told) is None


def test_the_busiest_warp_is_compared_only_where_a_scheduler_has_one_warp() -> None:
    rows = bounds.counts(emulated(), counters(**{"smsp__inst_executed.max": 117}))
    assert verdict(rows, "busiest warp over the average") == "over"
    large = emulated(replace(COPY, block=(256, 1, 1)))
    assert "busiest warp over the average" not in {row.what for row in bounds.counts(large, counters())}


def test_barriers_are_counted_by_the_machines_opcode() -> None:
    rows = bounds.counts(emulated(barriers=100), counters({OPCODES: {"BAR": 104}}))
    assert verdict(rows, "barriers") == "ok"
    rows = bounds.counts(emulated(barriers=100), counters({OPCODES: {"LDG": 104}}))
    assert verdict(rows, "barriers") == "over"


def test_what_the_card_does_not_tell_is_not_measured() -> None:
    rows = bounds.counts(emulated(barriers=8, flop_fp32=9, global_load_requests=1), None)
    assert {row.verdict for row in rows} == {"not measured"}
    some = counters({"another": {}}, **{LOADS: 1})
    del some.values["sm__sass_thread_inst_executed_op_ffma_pred_on.sum"]
    rows = bounds.counts(emulated(barriers=8, flop_fp32=9, global_load_requests=1), some)
    assert verdict(rows, "FLOP") == "not measured"
    assert verdict(rows, "barriers") == "not measured"
    assert verdict(rows, "global load requests") == "ok"


# Outputs ------------------------------------------------------------------------------------------------


def pair(distance: float, dtype: str = "float32") -> tuple[dict[str, Array], dict[str, Array]]:
    ours, theirs = np.ones(8, dtype), np.ones(8, dtype)
    theirs[3] += distance
    return {"y": ours}, {"y": theirs}


def test_without_contraction_outputs_are_the_same_bits() -> None:
    assert bounds.outputs(CHAIN, "exact", *pair(0.0)).verdict == "ok"
    assert bounds.outputs(CHAIN, "exact", *pair(1.2e-7)).verdict == "over"
    zeros = {"y": np.zeros(2, "float32")}, {"y": np.array([0.0, -0.0], "float32")}
    assert bounds.outputs(CHAIN, "exact", *zeros).verdict == "over"


def test_with_default_flags_a_contraction_for_each_multiply_add_is_allowed() -> None:
    assert bounds.outputs(CHAIN, "ordinary", *pair(16 * 2 * 2.0**-24)).verdict == "ok"
    assert bounds.outputs(CHAIN, "ordinary", *pair(16 * 2 * 2.0**-22)).verdict == "over"
    assert bounds.outputs(COPY, "ordinary", *pair(1.2e-7)).verdict == "over"  # nothing to contract
    assert bounds.outputs(CHAIN, "ordinary", *pair(np.nan)).verdict == "over"
    assert bounds.outputs(CHAIN, "ordinary", *pair(np.inf)).verdict == "over"


def test_integers_are_never_near_enough() -> None:
    assert bounds.outputs(CHAIN, "ordinary", *pair(1, "int32")).verdict == "over"


def test_tensor_cores_may_truncate_each_term_and_approximations_are_told() -> None:
    tensor = replace(CHAIN, numbers="tensor")
    assert bounds.outputs(tensor, "exact", *pair(2.0**-19)).verdict == "ok"
    assert bounds.outputs(tensor, "exact", *pair(2.0**-15)).verdict == "over"
    assert bounds.outputs(tensor, "exact", *pair(2.0**-7, "float16")).verdict == "ok"
    row = bounds.outputs(replace(COPY, numbers="approximate"), "exact", *pair(1.0))
    assert (row.verdict, row.note) == ("told", "1 elements differ, by 1 at most")


# The page -----------------------------------------------------------------------------------------------


def test_the_page_shows_sums_what_is_over_and_everything() -> None:
    rows = [
        *bounds.counts(emulated(global_load_requests=5), counters(**{LOADS: 7})),
        bounds.outputs(COPY, "exact", *pair(0.0)),
    ]
    result = Result(
        "2026-12-01", "NVIDIA H200 (sm_90)", "driver 580", 1, 1, rows, [], {}, ["Something was not done."]
    )
    page = report.markdown(result)
    assert "kernelwright bench emulator-vs-card --out" in page
    assert "2026-12-01: NVIDIA H200 (sm_90), driver 580." in page
    assert "- Something was not done." in page
    assert "| global load requests | 1% |  | 1 |  |  |" in page
    assert page.count("| copy | global load requests | 5 | 7 | 1% | over |  |") == 2
    assert "the same bits" in page
    assert not result.good
    assert report.summary(result) == "1 cases on NVIDIA H200 (sm_90): 5 ok, 1 over, 0 not measured, 1 told"
    fine = replace(result, rows=[row for row in rows if row.verdict != "over"], notes=[])
    assert fine.good
    assert "Nothing." in report.markdown(fine)
