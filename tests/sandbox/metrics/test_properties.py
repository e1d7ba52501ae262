"""What must hold for any counts: bounds, waste never pays, and no cliffs."""

from __future__ import annotations

import math

from handmade_traces import compiled, launch
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.emulator.trace import LineCounts
from sandbox.metrics import measure
from sandbox.targets import TARGETS
from sandbox.types import Metrics

TARGET = TARGETS["sm_90"]
WASTE = {  # a counter whose growth alone is pure waste -> the family that must not improve
    "global_load_sectors": "coalescing",
    "global_store_sectors": "coalescing",
    "shared_load_wavefronts": "shared_memory",
    "shared_store_wavefronts": "shared_memory",
    "local_bytes": "overheads",
}


@st.composite
def lines(draw: st.DrawFn) -> LineCounts:
    requests = st.integers(0, 50)
    loads, stores, reads, writes, atomics = (draw(requests) for _ in range(5))
    instructions = loads + stores + reads + writes + atomics + draw(st.integers(1, 200))
    load_ideal, store_ideal = loads * draw(st.integers(1, 4)), stores * draw(st.integers(1, 4))
    flop = draw(st.integers(0, 64 * instructions))
    return LineCounts(
        line=draw(st.integers(0, 9)),
        instructions=instructions,
        active_lanes=draw(st.integers(instructions, 32 * instructions)),
        global_load_requests=loads,
        global_load_sectors=load_ideal * draw(st.integers(1, 8)),
        global_load_bytes=32 * load_ideal,
        global_load_ideal=load_ideal,
        global_store_requests=stores,
        global_store_sectors=store_ideal * draw(st.integers(1, 8)),
        global_store_bytes=32 * store_ideal,
        global_store_ideal=store_ideal,
        shared_load_requests=reads,
        shared_load_wavefronts=reads * draw(st.integers(1, 32)),
        shared_load_ideal=reads,
        shared_store_requests=writes,
        shared_store_wavefronts=writes * draw(st.integers(1, 32)),
        shared_store_ideal=writes,
        local_bytes=draw(st.integers(0, 500)),
        flop_fp32=flop,
        atomics=atomics,
        shared_atomics=draw(st.integers(0, atomics)),
        atomic_lanes=32 * atomics,
        atomic_addresses=atomics * draw(st.integers(1, 32)),
        barriers=draw(st.integers(0, 5)),
    )


def metrics_of(line: LineCounts, warps: int) -> Metrics:
    sectors = line.global_load_ideal * warps
    trace = launch(
        warps, [line], load_sectors=sectors, store_sectors=line.global_store_ideal * warps, barriers=1
    )
    return measure([trace], [compiled()], TARGET, {})


@given(lines(), st.integers(1, 2000))
@settings(max_examples=150, deadline=None)
def test_bounds(line: LineCounts, warps: int) -> None:
    metrics = metrics_of(line, warps)
    assert 0 <= metrics.structural_score <= 100
    assert all(0 <= score <= 1 for score in metrics.families.values())
    assert Metrics.model_validate_json(metrics.model_dump_json()) == metrics


@given(lines(), st.sampled_from(sorted(WASTE)), st.integers(2, 20))
@settings(max_examples=150, deadline=None)
def test_waste_never_helps_its_family(line: LineCounts, counter: str, times: int) -> None:
    family = WASTE[counter]
    before = metrics_of(line, 64).families
    after = metrics_of(line.model_copy(update={counter: getattr(line, counter) * times}), 64).families
    if family in before:
        assert after[family] <= before[family] + 1e-12
    if "intensity" in before:
        assert after["intensity"] <= before["intensity"] + 1e-12


@given(lines(), st.sampled_from(sorted(WASTE)))
@settings(max_examples=150, deadline=None)
def test_no_cliffs(line: LineCounts, counter: str) -> None:
    """A thousandth more of anything moves the score by less than a point."""
    large = line.model_copy(
        update={name: 1000 * value for name, value in line.model_dump().items() if name != "line"}
    )
    grown = large.model_copy(update={counter: math.ceil(getattr(large, counter) * 1.001)})
    assert abs(metrics_of(grown, 64).structural_score - metrics_of(large, 64).structural_score) < 1


@given(lines(), st.sampled_from(sorted(WASTE)), st.integers(2, 20))
@settings(max_examples=300, deadline=None)
def test_waste_never_lifts_the_score(line: LineCounts, counter: str, times: int) -> None:
    """Half a point is allowed: a family that weighs more may be a bad kernel's best."""
    wasteful = line.model_copy(update={counter: getattr(line, counter) * times})
    assert metrics_of(wasteful, 64).structural_score <= metrics_of(line, 64).structural_score + 0.5


def test_nothing_launched_is_said() -> None:
    metrics = measure([], [], TARGET, {"n": 4})
    assert metrics.structural_score == 0
    assert "No kernel was launched" in metrics.notes[0]
    assert "n = 4" in metrics.notes[0]
    some = measure([launch(8, [LineCounts(line=1, instructions=1)])], [compiled()], TARGET, {"n": 4})
    assert not any("No kernel" in note for note in some.notes)
