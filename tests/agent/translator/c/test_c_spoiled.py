"""Versions that are worse on purpose: each differs from the best in what its name says."""

from __future__ import annotations

import re

import pytest
from c_samples import CORPUS, body_of, context_of, corpus, prototype

from agent.translator.c.passes.spoiled import WITHOUT, spoilt, without
from agent.translator.c.program import emit_program
from agent.translator.c.schedules import Choice, Schedule
from agent.translator.c.stages import kernels

TURN = """
void turn(int n, int m, const float *a, float *b) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            b[j * n + i] = a[i * m + j];
}
"""


def versions(name: str, source: str = "") -> tuple[str, dict[str, str]]:
    """(the direct version, the spoilt ones by their slug)."""
    context = context_of(source, name) if source else corpus(name)
    found = kernels(context.plan.stages)
    plain = Schedule(tuple(Choice() for _ in found))
    shown = prototype(context)
    return (
        emit_program(context, plain, shown),
        {slug: emit_program(context, schedule, shown) for slug, _, schedule in spoilt(context, found, plain)},
    )


@pytest.mark.parametrize("name", sorted(p.stem for p in CORPUS.glob("*.c")))
def test_every_spoilt_version_can_be_written_and_differs(name: str) -> None:
    direct, made = versions(name)
    assert len({direct, *made.values()}) == len(made) + 1
    assert all('extern "C" void launch(' in source for source in made.values())


def test_each_does_what_its_name_says() -> None:
    direct, made = versions("covariance")
    assert "dim3(1, 128)" in made["flat_blocks"] or "1, 128" in made["flat_blocks"]
    assert made["useless_barriers"].count("__syncthreads") > direct.count("__syncthreads")
    for kernel in re.findall(r"__global__ void (\w+)\(", made["useless_barriers"]):
        first = body_of(made["useless_barriers"], kernel).splitlines()[1]
        assert "__syncthreads" in first  # where every thread still comes by
    assert re.sub(r"\d+", "", made["tiny_blocks"]) == re.sub(r"\d+", "", direct)  # only numbers changed
    _, made = versions("gemm_ikj")
    assert "atomicAdd" in made["needless_atomics"]
    _, made = versions("turn", TURN)
    assert "[32][32]" in made["bank_conflicts"]  # no padding
    _, made = versions("edit_dp")
    assert "uncoalesced_order" not in made  # one dimension has no order


def test_each_improvement_is_left_out_once() -> None:
    best = Schedule((Choice(vector=16, block=(64,)), Choice(shuffle=True, per_thread=4), Choice()))
    found = dict(without(best))
    assert set(found) == {"vector", "block", "shuffle", "per_thread"} <= set(WITHOUT)
    assert found["vector"] == Schedule((Choice(block=(64,)), *best.choices[1:]))
    assert list(without(Schedule((Choice(), Choice())))) == []
